// What the threads of a warp, and the blocks of a grid, do together.
#include "base/common.cuh"

#define ALL 0xffffffffu

__device__ inline u32 lane_id() { return threadIdx.x & 31; }
__device__ inline u32 lanes_before() { return (1u << lane_id()) - 1; }

// Warps that share some work, and which of them this one is.
struct Crew {
  u32 warp, warps;
};

__device__ inline Crew whole_grid() {
  const u32 own = blockDim.x / 32;
  return {blockIdx.x * own + threadIdx.x / 32, gridDim.x * own};
}

__device__ inline Crew own_block() { return {threadIdx.x / 32, blockDim.x / 32}; }

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

// Add the sum over a block's threads of each of three numbers to its counter. Called by whole blocks.
__device__ inline void add_sums(const u32 (&own)[3], u64 *const (&to)[3]) {
  __shared__ u32 sums[3];
  if (threadIdx.x < 3) sums[threadIdx.x] = 0;
  __syncthreads();
  const u32 mine[3] = {warp_sum(own[0]), warp_sum(own[1]), warp_sum(own[2])};
  if (lane_id() < 3) {
    const u32 sum = mine[lane_id() == 0 ? 0 : lane_id() == 1 ? 1 : 2];
    if (sum) atomicAdd(&sums[lane_id()], sum);
  }
  __syncthreads();
  if (threadIdx.x < 3 && sums[threadIdx.x]) {
    u64 *const counter = threadIdx.x == 0 ? to[0] : threadIdx.x == 1 ? to[1] : to[2];
    atomicAdd(counter, (u64)sums[threadIdx.x]);
  }
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
