// How rows are cut into turns (programs/rows.cuh).
#include "programs/rows.cuh"
#include "programs/sums.cuh"

// turn_rows[t]: the first row whose cost, with that of all rows before it, is beyond t turns; the
// number of rows for the last one.
template <class Offset>
__global__ void cut_turns(const Offset *offsets, u32 rows, u32 turn, u32 turns, u32 *turn_rows) {
  FOR_ITEMS(t, (u64)turns + 1) {
    u32 low = 0, high = t < turns ? rows : 0;
    while (low < high) {
      const u32 middle = low + (high - low) / 2;
      if ((u64)offsets[middle] + middle < t * turn)
        low = middle + 1;
      else
        high = middle;
    }
    turn_rows[t] = t < turns ? low : rows;
  }
}

// Rows of more than `turn` entries, in no order; count: how many, 0 before.
template <class Offset>
__global__ void list_long_rows(const Offset *offsets, u32 rows, u32 turn, u32 *listed, u32 *count) {
  FOR_ITEMS(row, rows) {
    if ((u64)offsets[row + 1] - offsets[row] > turn) listed[atomicAdd(count, 1u)] = row;
  }
}

// The weights of each row's entries, added up. By warps.
template <class Offset, class Weight>
__global__ void add_weights(const Offset *offsets, const Weight *weights, u32 rows, double *sums) {
  FOR_STRIPS(row, rows) {
    const u64 end = offsets[row + 1];
    double sum = 0;
    for (u64 e = offsets[row] + lane_id(); e < end; e += 32) sum += weights[e];
    sum = lanes_sum(sum);
    if (lane_id() == 0) sums[row] = sum;
  }
}
