// The monoids of operations on words, with the names that they have on CPUs (kernels/pieces/operators.py).
#include "base/common.cuh"

// unit: the neutral word. full: no word that is still to come changes one that has this.
template <class W>
struct Words {
  using Word = W;
  W unit, full;
};

// `merge` combines a word with one in memory that others change, too, and says whether this changed it.
template <class W>
struct WholeSum : Words<W> {
  __device__ W combine(W left, W right) const { return left + right; }
  __device__ bool finished(W) const { return false; }
  __device__ bool merge(W *into, W word) const {
    if (word) atomicAdd(into, word);
    return word != 0;
  }
};

struct IntegerSum : WholeSum<u64> {};
struct CountSum : WholeSum<u32> {};

struct Or : Words<u64> {
  __device__ u64 combine(u64 left, u64 right) const { return left | right; }
  __device__ bool finished(u64 word) const { return (word & full) == full; }
  __device__ bool merge(u64 *into, u64 word) const { return (word & ~*into) && (word & ~atomicOr(into, word)); }
};

struct Min : Words<u64> {
  __device__ u64 combine(u64 left, u64 right) const { return min(left, right); }
  __device__ bool finished(u64 word) const { return word == full; }
  __device__ bool merge(u64 *into, u64 word) const { return word < *into && word < atomicMin(into, word); }
};
