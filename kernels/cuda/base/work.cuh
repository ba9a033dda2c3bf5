// How the threads of a launch share work: whatever the grid, they do all of it.
#include "base/common.cuh"

#define NONE 0xffffffffu              // no vertex, no row
#define NO_KEY 0xffffffffffffffffull  // sorts behind all keys

__device__ inline u64 first_item() { return (u64)blockIdx.x * blockDim.x + threadIdx.x; }
__device__ inline u64 items_apart() { return (u64)gridDim.x * blockDim.x; }

// Thread by thread over ``count`` items.
#define FOR_ITEMS(i, count) for (u64 i = first_item(); i < (count); i += items_apart())
// Warp by warp over ``count`` strips; the lanes of a warp go together.
#define FOR_STRIPS(t, count) for (u64 t = first_item() >> 5; t < (count); t += items_apart() >> 5)

__device__ inline bool has_bit(const u32 *bits, u64 place) { return bits[place / 32] >> place % 32 & 1; }

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

#define LONG_STRIP 1024  // edges, or keys, of a warp at a time
