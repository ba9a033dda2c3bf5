// What checks of Graph500's rules share.
#include "bfs/search.cuh"
#include "base/work.cuh"

__device__ inline int level(u8 distance) { return distance == 255 ? -1 : distance; }
__device__ inline int level(int distance) { return distance; }

// By rule (0 is not used): how often it fails, and the least place, a vertex or an edge as
// u << 32 | v, where it does.
struct Report {
  u64 *count;
  u64 *first;
};

__device__ inline void tell(const Report &report, int rule, u64 where) {
  atomicAdd(&report.count[rule], 1ull);
  atomicMin(&report.first[rule], where);
}
