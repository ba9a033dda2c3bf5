// What each level of a search found. The definition is a histogram: NumPy's bincount.
#include "bfs/check.cuh"

// counts[2 k]: vertices at distance k; counts[2 k + 1]: edges that leave them. They begin at 0. A warp
// takes 32 vertices, which stand at few distances, and adds once for each of these.
template <class Offset, class Distance>
__global__ void count_levels(const Offset *offsets, const Distance *distance, u32 vertices, u64 *counts) {
  FOR_STRIPS(strip, (vertices + 31) / 32) {
    const u32 v = (u32)strip * 32 + lane_id();
    const int own = v < vertices ? level(distance[v]) : -1;
    const u64 degree = own < 0 ? 0 : (u64)(offsets[v + 1] - offsets[v]);
    for (u32 open = __ballot_sync(ALL, own >= 0); open;) {
      const int at = __shfl_sync(ALL, own, __ffs(open) - 1);
      const u32 alike = __ballot_sync(ALL, own == at);
      const u64 edges = warp_scan(own == at ? degree : (u64)0);
      if (lane_id() == 31) {
        atomicAdd(&counts[2 * (u64)at], (u64)__popc(alike));
        atomicAdd(&counts[2 * (u64)at + 1], edges);
      }
      open &= ~alike;
    }
  }
}
