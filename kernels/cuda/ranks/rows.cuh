// From shards of stored rows to a rank's own.
#include "base/work.cuh"

// Targets of a stored subgraph, or tile, from entry `begin` on, and where its rows begin.
template <class From>
struct Shard {
  const u32 *targets;
  u64 begin, count;
  const From *offsets;
  u32 rows;
};

// Rows in the making, each of which goes on at its `fill`. Entries from near_end on stand in `far`,
// pinned host memory.
template <class Offset>
struct MergedRows {
  const Offset *fill;
  u32 *near;
  u64 near_end;
  u32 *far;
};

// Write a shard's targets to the rows that they belong to. number_row, number_target: give what the
// rank calls rows and targets.
template <class Offset, class From, class Numbers>
__device__ inline void place(const Shard<From> &shard, const MergedRows<Offset> &to,
                             const Numbers &number_row, const Numbers &number_target) {
  FOR_ITEMS(i, shard.count) {
    const u64 edge = shard.begin + i;
    const u32 row = row_of(shard.offsets, 0, shard.rows, edge);
    const u64 at = (u64)to.fill[number_row(row)] + (edge - shard.offsets[row]);
    const u32 target = number_target(shard.targets[i]);
    if (at < to.near_end)
      to.near[at] = target;
    else
      to.far[at - to.near_end] = target;
  }
}
