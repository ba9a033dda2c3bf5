// What comes to the vertices along all edges: sums of values at the edges' other ends, in 64 bits. PageRank's
// iterations (walks/pagerank.cuh) and the operation `gather` (walks/gather.cu) are made of it. The whole grid
// takes part, and meets once where rows are cut, and once where they stand in columns.
//
// A value is read for each entry, and from anywhere. Where that is what takes the time, entries stand by tiles
// (walks/tiles.cuh), or rows are cut into columns of targets whose values the second-level cache holds, one
// column after the other (Beamer, Asanovic, Patterson: Reducing Pagerank Communication via Propagation
// Blocking, IPDPS 2017, section III).
#include "programs/rows.cuh"
#include "programs/sums.cuh"
#include "walks/tiles.cuh"

#define TOGETHER 4  // entries of a lane whose loads are under way at once
#define BESIDE 2    // vertices of which these are

// What an edge makes of the value at its end (kernels/pieces/operators.py). Two: edges of an entry and of the
// next one, or of one alone.
struct Sum {
  struct Two {
    __device__ double first(double value) const { return value; }
    __device__ double other(double value) const { return value; }
  };
  const void *weights;

  __device__ double along(double value, u64) const { return value; }
  __device__ Two one(u64) const { return {}; }
  __device__ Two two(u64) const { return {}; }
};

template <class Weight>
struct WeightedSum {
  struct __align__(8) Two {
    Weight weight, next;

    __device__ double first(double value) const { return value * weight; }
    __device__ double other(double value) const { return value * next; }
  };
  const Weight *weights;

  __device__ double along(double value, u64 entry) const { return value * __ldg(weights + entry); }
  __device__ Two one(u64 entry) const { return {__ldg(weights + entry), 0}; }
  __device__ Two two(u64 entry) const { return *(const Two *)(weights + entry); }  // an even number
};

// Rows, whose targets may stand in two tiers. columns: of `dense` rows each, those of the first vertices;
// after them come the rows of all others. part_sums, column_sums: of parts of rows, and of rows that are one
// column's.
template <class Offset, bool TIERED>
struct InRows {
  Rows<Offset> rows;
  double *part_sums;
  double *column_sums;
  u32 dense;
  u32 columns;
};

template <bool TIERED, class Offset, class Operator, class Shares>
__device__ inline double gather(const Rows<Offset> &rows, const Operator &along, const Shares &share,
                                Entries entries, u32 lane, u32 width) {
  double sum = 0;
  for (u64 e = entries.begin + lane; e < entries.end; e += (u64)TOGETHER * width) {
    u32 target[TOGETHER];
    double value[TOGETHER];
#pragma unroll
    for (u32 k = 0; k < TOGETHER; k++)
      target[k] = e + k * width < entries.end ? entry_once<TIERED>(rows.targets, e + k * width) : NONE;
#pragma unroll
    for (u32 k = 0; k < TOGETHER; k++)
      value[k] = target[k] == NONE ? 0 : along.along(share[target[k]], e + k * width);
#pragma unroll
    for (u32 k = 0; k < TOGETHER; k++) sum += value[k];
  }
  return lanes_sum(sum, width);
}

// Call `settle(row, sum)` with each row that is longer than a turn, and the sum of its parts, which `take(part)` gives.
// Called by the whole grid, which has met since parts were added up.
template <class Take, class Settle>
__device__ inline void add_parts(const u32 *long_rows, const u32 *first_parts, u32 longs, Take take, Settle settle) {
  const Crew crew = whole_grid();
  for (u32 place = crew.warp; place < longs; place += crew.warps) {
    double sum = 0;
    for (u32 part = first_parts[place] + lane_id(); part < first_parts[place + 1]; part += 32) sum += take(part);
    sum = lanes_sum(sum);
    if (lane_id() == 0) settle(long_rows[place], sum);
  }
}

template <class Give>
__device__ inline void give_one(Give &give, u32 vertex, double came) {
  const u32 vertices[] = {vertex};
  const double all[] = {came};
  give(vertices, all);
}

// Call `give(vertices, came)` with all that comes to each, once, some at a time; NONE is none. Called by the
// whole grid. arrived: of its barrier.
template <class Offset, bool TIERED, class Operator, class Shares, class Give>
__device__ inline void gather_all(const InRows<Offset, TIERED> &in, const Operator &along, const Shares &share,
                                  u64 *arrived, Give give) {
  const Rows<Offset> &rows = in.rows;
  const Crew crew = whole_grid();
  const u64 cut = (u64)in.columns * in.dense;
  auto settle = [&](u32 row, double came) {
    if (row < cut)
      __stcs(in.column_sums + row, came);
    else
      give_one(give, (u32)(row - cut) + in.dense, came);
  };
  for (u32 unit = crew.warp; unit < rows.parts + rows.turns; unit += crew.warps) {
    visit_unit(rows, unit, [&](u32 piece, Entries some, u32 lane, u32 width) {
      const double sum = gather<TIERED>(rows, along, share, some, lane, width);
      if (piece == NONE || lane) return;
      if (piece < rows.parts)
        in.part_sums[piece] = sum;
      else
        settle(piece - rows.parts, sum);
    });
  }
  if (rows.longs) {
    grid_barrier(arrived);
    auto take = [&](u32 part) { return __ldcg(in.part_sums + part); };
    add_parts(rows.long_rows, rows.first_parts, rows.longs, take, settle);
  }
  if (cut) {
    grid_barrier(arrived);
    FOR_ITEMS(v, in.dense) {
      double came = 0;
      for (u32 column = 0; column < in.columns; column++)
        came += __ldcs(in.column_sums + (u64)column * in.dense + v);
      give_one(give, (u32)v, came);
    }
  }
}

// The same of rows whose entries stand by tiles.
template <class Operator, class Shares, class Give>
__device__ inline void gather_all(const Tiles &tiles, const Operator &along, const Shares &share, u64 *arrived,
                                  Give give) {
  double *const sums = tiles.sums + tiles.parts;
  add_bands(tiles, along, share, [&](u32 begin, u32 end) {
    for (u32 first = begin + threadIdx.x; first < end; first += BESIDE * blockDim.x) {
      u32 row[BESIDE];
      double came[BESIDE];
#pragma unroll
      for (u32 k = 0; k < BESIDE; k++) {
        row[k] = first + k * blockDim.x;
        came[k] = row[k] < end ? __ldcg(sums + row[k]) : NOT_A_NUMBER;
      }
#pragma unroll
      for (u32 k = 0; k < BESIDE; k++)
        if (came[k] != came[k])
          row[k] = NONE;
        else
          sums[row[k]] = 0;
      give(row, came);
    }
  });
  if (tiles.longs) {
    grid_barrier(arrived);
    auto take = [&](u32 part) {
      const double sum = __ldcg(tiles.sums + part);
      tiles.sums[part] = 0;
      return sum;
    };
    auto settle = [&](u32 row, double came) { give_one(give, row, came); };
    add_parts(tiles.long_rows, tiles.first_parts, tiles.longs, take, settle);
  }
}
