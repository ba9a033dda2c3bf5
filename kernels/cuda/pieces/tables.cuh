// Sums by label, of a row's edges: whole numbers of 64 bits, by what edges amount to. They stand in a hash table in
// shared memory or in device memory, which the threads of a warp or of a block fill together.
#include "programs/rows.cuh"

// What an edge amounts to (kernels/pieces/operators.py).
struct UnitAmounts {
  const void *weights;
  double scale;

  __device__ u64 amount(u64) const { return 1; }
};

template <class Weight>
struct ScaledWeights {
  const Weight *weights;
  double scale;

  __device__ u64 amount(u64 edge) const { return (u64)rint((double)__ldg(weights + edge) * scale); }
};

struct ListedAmounts {
  const u64 *weights;
  double scale;

  __device__ u64 amount(u64 edge) const { return __ldg(weights + edge); }
};

// A label, and what it is worth: by its sum, or what follows from it.
struct Pick {
  u64 total;
  u32 label;
};

// Of the lanes' picks the one that is preferred, for each of `width` lanes that stand together.
template <class Prefers>
__device__ inline Pick best_of_lanes(Prefers prefers, Pick own, u32 width = 32) {
  for (u32 step = width / 2; step; step /= 2) {
    const Pick other = {__shfl_xor_sync(ALL, own.total, step), __shfl_xor_sync(ALL, own.label, step)};
    if (prefers(other, own)) own = other;
  }
  return own;
}

// The threads that take a row together: those of a warp, or of a block.
struct OneWarp {
  __device__ u32 thread() const { return lane_id(); }
  __device__ u32 threads() const { return 32; }
  __device__ void meet() const { __syncwarp(); }
  template <class Prefers>
  __device__ Pick best(Prefers prefers, Pick own) const {
    return best_of_lanes(prefers, own);
  }
};

struct OneBlock {
  __device__ u32 thread() const { return threadIdx.x; }
  __device__ u32 threads() const { return blockDim.x; }
  __device__ void meet() const { __syncthreads(); }
  template <class Prefers>
  __device__ Pick best(Prefers prefers, Pick own) const {
    __shared__ u64 totals[32];
    __shared__ u32 labels[32];
    own = best_of_lanes(prefers, own);
    if (lane_id() == 0) totals[threadIdx.x / 32] = own.total, labels[threadIdx.x / 32] = own.label;
    __syncthreads();
    const bool any = lane_id() < blockDim.x / 32;
    own = best_of_lanes(prefers, any ? Pick{totals[lane_id()], labels[lane_id()]} : Pick{0, NONE});
    __syncthreads();  // before they are written again
    return own;
  }
};

// The bits of the slots that a row of so many edges needs: there are twice as many slots, so some stay empty.
__device__ inline u32 bits_of_table(u32 length) { return 32 - __clz(2 * length - 1); }

// There are 2^bits slots, more than labels. Read past the nearest cache: atomics change them behind it.
struct Table {
  volatile u32 *labels;
  volatile u64 *totals;
  u32 bits;

  __device__ u32 slots() const { return 1u << bits; }

  __device__ void add(u32 label, u64 amount) const {
    u32 slot = label * 0x9E3779B1u >> (32 - bits);
    while (true) {
      u32 found = labels[slot];
      if (found == NONE) found = atomicCAS((u32 *)labels + slot, NONE, label);
      if (found == NONE || found == label) break;
      slot = (slot + 1) & (slots() - 1);
    }
    atomicAdd((u64 *)totals + slot, amount);
  }
};

// Fill a table, which is no one else's meanwhile, with the sums of `length` edges; `told(k)` gives the label and the
// amount of one, or NONE. Then each thread of the group goes through some of the labels: `visit(pick)`.
template <class Group, class Told, class Visit>
__device__ inline void sum_by_label(const Group &group, const Table &table, u32 length, Told told, Visit visit) {
  for (u32 slot = group.thread(); slot < table.slots(); slot += group.threads())
    table.labels[slot] = NONE, table.totals[slot] = 0;
  group.meet();
  for (u32 base = 0; base < length; base += group.threads()) {
    const u32 k = base + group.thread();
    const Pick own = k < length ? told(k) : Pick{0, NONE};
    // Neighbours often have the same label: that of the first lane is added once for all.
    const u32 label = __shfl_sync(ALL, own.label, 0);
    u64 all = own.label == label ? own.total : 0;
    for (u32 step = 16; step; step /= 2) all += __shfl_xor_sync(ALL, all, step);
    if (own.label != NONE && (lane_id() == 0 || own.label != label))
      table.add(own.label, lane_id() == 0 ? all : own.total);
  }
  group.meet();
  for (u32 slot = group.thread(); slot < table.slots(); slot += group.threads())
    if (const u32 label = table.labels[slot]; label != NONE) visit(Pick{table.totals[slot], label});
}
