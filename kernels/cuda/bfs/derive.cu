// Forms of a graph's rows that the searches read beside the rows themselves.
#include "bfs/search.cuh"

// first[v]: entry 0 of row v; next[v]: entries 1 to NEXT; NONE where there is none.
template <class Offset>
__global__ void first_entries(const Offset *offsets, const Targets targets, u32 *first,
                              u32 *next, u32 rows) {
  u64 threads = (u64)gridDim.x * blockDim.x;
  for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < (u64)rows * NEXT; i += threads) {
    u32 v = (u32)(i / NEXT), k = (u32)(i % NEXT) + 1;
    u64 at = offsets[v], end = offsets[v + 1];
    next[i] = at + k < end ? entry<true>(targets, at + k) : NONE;
    if (k == 1) first[v] = at < end ? entry<true>(targets, at) : NONE;
  }
}

// Rows of WIDTH entries, filled up with NONE; of a row that is longer the last one is LONGER.
template <class Offset, int WIDTH>
__global__ void padded_rows(const Offset *offsets, const Targets targets, u32 *padded, u32 rows) {
  u64 threads = (u64)gridDim.x * blockDim.x;
  for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < (u64)rows * WIDTH; i += threads) {
    u32 v = (u32)(i / WIDTH), column = (u32)(i % WIDTH);
    u64 degree = offsets[v + 1] - offsets[v];
    bool longer = degree > WIDTH && column == WIDTH - 1;
    u32 target = column < degree ? entry<true>(targets, offsets[v] + column) : NONE;
    padded[i] = longer ? LONGER : target;
  }
}

// counts[i]: rows of more than 2^(i - 1) entries; of any, for i = 0.
template <class Offset>
__global__ void long_rows(const Offset *offsets, u32 rows, u64 *counts) {
  u32 threads = gridDim.x * blockDim.x, own = 0;
  for (u32 base = blockIdx.x * blockDim.x; base < rows; base += threads) {
    u32 v = base + threadIdx.x;
    u64 degree = v < rows ? offsets[v + 1] - offsets[v] : 0;
    for (u32 i = 0; i < 32; i++) {
      u32 longer = __popc(__ballot_sync(ALL, degree > (1ull << i >> 1)));
      if (lane_id() == i) own += longer;
      if (!longer) break;
    }
  }
  atomicAdd(&counts[lane_id()], (u64)own);
}
