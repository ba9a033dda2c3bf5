// The monoids of operations on words of 64 bits, with the names that they have on CPUs (kernels/pieces/operators.py).
#include "base/common.cuh"

// unit: the neutral word. full: no word that is still to come changes one that has this.
struct Words {
  u64 unit, full;
};

// `merge` combines a word with one in memory that others change, too, and says whether this changed it.
struct IntegerSum : Words {
  __device__ u64 combine(u64 left, u64 right) const { return left + right; }
  __device__ bool finished(u64) const { return false; }
  __device__ bool merge(u64 *into, u64 word) const {
    if (word) atomicAdd(into, word);
    return word != 0;
  }
};

struct Or : Words {
  __device__ u64 combine(u64 left, u64 right) const { return left | right; }
  __device__ bool finished(u64 word) const { return (word & full) == full; }
  __device__ bool merge(u64 *into, u64 word) const { return (word & ~*into) && (word & ~atomicOr(into, word)); }
};

struct Min : Words {
  __device__ u64 combine(u64 left, u64 right) const { return min(left, right); }
  __device__ bool finished(u64 word) const { return word == full; }
  __device__ bool merge(u64 *into, u64 word) const { return word < *into && word < atomicMin(into, word); }
};
