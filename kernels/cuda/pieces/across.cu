// The least edge that leads from each vertex to another tree: it depends on the words of both ends.
#include "pieces/monoids.cuh"
#include "programs/rows.cuh"

#define TOGETHER 4  // entries of a lane whose words are under way at once

// The least edge that leaves a group of vertices. A vertex has its group in the high half of its word, and its number
// in the low half, by NONE it takes no part. weights: the bits of each entry's weight; null where all edges are alike.
struct LeastLeaving : Min {
  const u32 *weights;

  __device__ bool takes_part(u64 here) const { return (u32)here != NONE; }
  __device__ u64 across(u64 here, u64 there, u64 edge) const {
    if (here >> 32 == there >> 32) return unit;
    return (u64)(weights ? __ldg(weights + edge) : 0) << 32 | (u32)there;
  }
};

// Combine, into y[v] of each vertex v that takes part, what the edges in its row give it.
template <class Offset, bool TIERED, class Operator, int THREADS, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS)
    gather_across(const __grid_constant__ Rows<Offset> rows, const __grid_constant__ Operator op, const u64 *x,
                  u64 *y) {
  visit_rows(rows, whole_grid(), [&](u32 row, Entries whole, Entries some, u32 lane, u32 width) {
    const u64 here = row == NONE ? op.unit : x[row];
    u64 came = op.unit;
    if (op.takes_part(here)) {
      for (u64 e = some.begin + lane; e < some.end; e += (u64)TOGETHER * width) {
        u32 target[TOGETHER];
#pragma unroll
        for (u32 k = 0; k < TOGETHER; k++)
          target[k] = e + k * width < some.end ? entry_once<TIERED>(rows.targets, e + k * width) : NONE;
#pragma unroll
        for (u32 k = 0; k < TOGETHER; k++)
          if (target[k] != NONE) came = op.combine(came, op.across(here, x[target[k]], e + k * width));
      }
    }
    for (u32 step = width / 2; step; step /= 2) came = op.combine(came, __shfl_xor_sync(ALL, came, step));
    if (row == NONE || lane || came == op.unit) return;
    if (some.count() == whole.count())
      y[row] = op.combine(y[row], came);
    else
      op.merge(y + row, came);
  });
}
