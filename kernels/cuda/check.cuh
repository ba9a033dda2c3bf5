// What checks of Graph500's rules share.
#include "search.cuh"
#include "work.cuh"

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

// The last row from ``low`` on, and before ``high``, that begins at ``edge`` or before.
template <class Offset>
__device__ inline u32 row_of(const Offset *offsets, u32 low, u32 high, u64 edge) {
  while (high - low > 1) {
    const u32 middle = low + (high - low) / 2;
    if (offsets[middle] <= edge)
      low = middle;
    else
      high = middle;
  }
  return low;
}

#define TILE 1024  // edges of a warp at a time
