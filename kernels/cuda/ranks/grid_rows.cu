// From the stored tiles of a rank's partitions to its rows: see grid.cuh for how it numbers
// vertices.
#include "base/work.cuh"

// The number of a place in a grid row or column, which its partitions take turns to fill.
__device__ inline u32 number_of(const u32 *__restrict__ firsts, u32 partitions, u32 place) {
  return firsts[place % partitions] + place / partitions;
}

// Write the targets of a shard of a tile to the rows that they belong to, each of which goes on at
// its `fill`. row_firsts: numbers at which the partitions of the tile's grid column begin;
// target_firsts: those of its grid row.
template <class Offset, class From>
__global__ void place_tile(const u32 *__restrict__ shard, u64 begin, u64 count,
                           const From *__restrict__ offsets, u32 rows,
                           const u32 *__restrict__ row_firsts, u32 grid_rows,
                           const u32 *__restrict__ target_firsts, u32 grid_columns,
                           const Offset *__restrict__ fill, u32 *__restrict__ near, u64 near_end,
                           u32 *far) {
  FOR_ITEMS(i, count) {
    const u64 edge = begin + i;
    const u32 own = row_of(offsets, 0, rows, edge);
    const u64 at = (u64)fill[number_of(row_firsts, grid_rows, own)] + (edge - offsets[own]);
    const u32 target = number_of(target_firsts, grid_columns, shard[i]);
    if (at < near_end)
      near[at] = target;
    else
      far[at - near_end] = target;
  }
}
