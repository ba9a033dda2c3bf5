// What the threads of a warp, and the blocks of a grid, do together.
#include "base/common.cuh"

#define ALL 0xffffffffu

__device__ inline u32 lane_id() { return threadIdx.x & 31; }
__device__ inline u32 lanes_before() { return (1u << lane_id()) - 1; }

__device__ inline u32 warp_sum(u32 value) {
#if __CUDA_ARCH__ >= 800
  return __reduce_add_sync(ALL, value);
#else
  for (int step = 16; step; step >>= 1) value += __shfl_xor_sync(ALL, value, step);
  return value;
#endif
}

__device__ inline u32 warp_max(u32 value) {
#if __CUDA_ARCH__ >= 800
  return __reduce_max_sync(ALL, value);
#else
  for (int step = 16; step; step >>= 1) value = max(value, __shfl_xor_sync(ALL, value, step));
  return value;
#endif
}

// Inclusive prefix sum over the lanes.
template <class T>
__device__ inline T warp_scan(T value) {
  for (int step = 1; step < 32; step <<= 1) {
    T before = __shfl_up_sync(ALL, value, step);
    if (lane_id() >= step) value += before;
  }
  return value;
}

// Have memory fetched into the second-level cache.
__device__ inline void prefetch(const void *address) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(address));
}

// The same, where `wanted`: a predicate and no branch.
__device__ inline void prefetch_where(bool wanted, const void *address) {
  asm volatile("{ .reg .pred p; setp.ne.u32 p, %1, 0; @p prefetch.global.L2 [%0]; }" ::"l"(address),
               "r"((u32)wanted));
}

// All blocks of a cooperative launch meet: what any wrote before, all see after.
// `arrived` counts on from launch to launch; each adds a multiple of the number of blocks.
__device__ inline void grid_barrier(u64 *arrived) {
  __syncthreads();
  if (threadIdx.x == 0) {
    u64 ticket, now;
    asm volatile("atom.add.release.gpu.global.u64 %0, [%1], 1;"
                 : "=l"(ticket)
                 : "l"(arrived)
                 : "memory");
    u64 goal = ticket - ticket % gridDim.x + gridDim.x;
    do {
      asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(now) : "l"(arrived) : "memory");
    } while (now < goal);
  }
  __syncthreads();
}
