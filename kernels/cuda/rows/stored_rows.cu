// From stored subgraphs to rows of all vertices, by global id (gpu_programs/stored_rows.py).
#include "base/targets.cuh"
#include "rows/made_rows.cuh"

// Global ids of a subgraph's rows, or targets: kernels/base/numbering.py has the rule.
struct Numbering {
  const u32 *table;
  u32 multiplier, addend, width, step;

  __device__ u32 operator()(u32 i) const {
    return table ? table[i] : i / width * multiplier + i % width * step + addend;
  }
};

template <class Offset, class From>
__global__ void place_entries(const Shard<From> shard, const MadeRows<Offset> to, const Numbering rows,
                              const Numbering targets) {
  place(shard, to, rows, targets);
}

// The same entries in the rows of what they lead to, in no order.
template <class Offset, class From>
__global__ void place_reversed(const Shard<From> shard, const MadeRows<Offset> to, const Numbering rows,
                               const Numbering targets) {
  FOR_ITEMS(i, shard.count) {
    const u32 row = row_of(shard.offsets, 0, shard.rows, shard.begin + i);
    to.put(atomicAdd(&to.fill[targets(shard.targets[i])], (Offset)1), rows(row), shard, i);
  }
}

__global__ void count_targets(const u32 *targets, u64 count, const Numbering numbering, u64 *counts) {
  FOR_ITEMS(i, count) atomicAdd(&counts[numbering(targets[i])], 1ull);
}

// Entries, from `begin` on, by row and target. Rows `first` and those after it, so many, have them.
template <class Offset>
__global__ void key_entries(const Offset *offsets, const Targets targets, u32 first, u32 rows, u64 begin,
                            u64 count, u64 *keys) {
  FOR_ITEMS(i, count) {
    const u32 row = row_of(offsets + first, 0, rows, begin + i);
    keys[i] = (u64)row << 32 | entry<true>(targets, begin + i);
  }
}
