// How rows are cut into turns (programs/rows.cuh), and into columns of targets.
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

// Targets are cut into `columns` of 2^shift. Rows from `dense` on are not cut. gpu_programs/rows.py packs the
// same structure.
struct Cuts {
  u32 dense, columns, shift;

  __device__ u32 column(u32 target) const { return target >> shift; }
};

// Of rows whose targets rise, where each column begins in each: starts[column * cuts.dense + row], and an
// end of all. unsorted: set where targets fall, and nothing is to be made of it.
template <class Offset>
__global__ void find_columns(const __grid_constant__ Rows<Offset> rows, const Cuts cuts, Offset *starts,
                             u32 *unsorted) {
  visit_rows(rows, whole_grid(), [&](u32 row, Entries whole, Entries some, u32 lane, u32 width) {
    if (row >= cuts.dense) return;
    auto begin = [&](u32 first, u32 last, u64 at) {
      for (u32 column = first; column < last; column++)
        starts[(u64)column * cuts.dense + row] = (Offset)at;
    };
    if (whole.count() == 0 && lane == 0) begin(0, cuts.columns + 1, whole.begin);
    for (u64 e = some.begin + lane; e < some.end; e += width) {
      const u32 target = rows.targets.near[e], column = cuts.column(target);
      const u32 before = e > whole.begin ? rows.targets.near[e - 1] : 0;
      if (target < before) *unsorted = 1;
      begin(e > whole.begin ? cuts.column(before) + 1 : 0, column + 1, e);
      if (e + 1 == whole.end) begin(column + 1, cuts.columns + 1, whole.end);
    }
  });
}

// Targets, and their weights where there are any, column after column. offsets: of cuts.dense rows in
// each, then of the rows that are not cut.
template <class Offset>
__global__ void move_to_columns(const __grid_constant__ Rows<Offset> rows, const Cuts cuts,
                                const Offset *starts, const Offset *offsets, const u32 *weights,
                                u32 *targets, u32 *moved_weights) {
  visit_rows(rows, whole_grid(), [&](u32 row, Entries, Entries some, u32 lane, u32 width) {
    if (row >= cuts.dense) return;  // they stand where they stood
    for (u64 e = some.begin + lane; e < some.end; e += width) {
      const u32 target = rows.targets.near[e];
      const u64 place = (u64)cuts.column(target) * cuts.dense + row;
      const u64 to = (u64)offsets[place] + (e - (u64)starts[place]);
      targets[to] = target;
      if (weights) moved_weights[to] = weights[e];
    }
  });
}
