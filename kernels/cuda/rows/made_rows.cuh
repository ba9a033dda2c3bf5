// From shards of stored rows to rows on a device (gpu/made_rows.py).
#include "base/work.cuh"

// Some entries of a stored subgraph, or tile, from entry `begin` on, and where its rows begin. weights: null
// where there are none.
template <class From>
struct Shard {
  const u32 *targets;
  const u32 *weights;
  u64 begin, count;
  const From *offsets;
  u32 rows;
};

// Rows in the making, each of which goes on at its `fill`. Entries from near_end on stand in `far`, pinned
// host memory.
template <class Offset>
struct MadeRows {
  Offset *fill;
  u32 *near;
  u64 near_end;
  u32 *far;
  u32 *weights;

  template <class From>
  __device__ void put(u64 at, u32 target, const Shard<From> &shard, u64 i) const {
    if (at < near_end)
      near[at] = target;
    else
      far[at - near_end] = target;
    if (shard.weights) weights[at] = shard.weights[i];
  }
};

// Write a shard's entries to the rows that they belong to. number_row, number_target: give what the rows that
// are made call stored rows and targets.
template <class Offset, class From, class Numbers>
__device__ inline void place(const Shard<From> &shard, const MadeRows<Offset> &to, const Numbers &number_row,
                             const Numbers &number_target) {
  FOR_ITEMS(i, shard.count) {
    const u64 edge = shard.begin + i;
    const u32 row = row_of(shard.offsets, 0, shard.rows, edge);
    const u64 at = (u64)to.fill[number_row(row)] + (edge - shard.offsets[row]);
    to.put(at, number_target(shard.targets[i]), shard, i);
  }
}
