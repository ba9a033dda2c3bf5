// Sums of 64-bit floats that are added up in the same order each time.
#include "base/warp.cuh"

// Over `width` lanes that stand together, a power of two, the same in all of the warp; each gets it.
__device__ inline double lanes_sum(double value, u32 width = 32) {
  for (u32 step = width / 2; step; step /= 2) value += __shfl_xor_sync(ALL, value, step);
  return value;
}

struct Pair {
  double one, other;

  __device__ void operator+=(const Pair &more) { one += more.one, other += more.other; }
};

__device__ inline Pair lanes_sum(Pair own) { return {lanes_sum(own.one), lanes_sum(own.other)}; }

// Over a block, for its first thread. Called by whole blocks.
__device__ inline Pair block_sum(Pair own) {
  __shared__ Pair warps[32];
  own = lanes_sum(own);
  __syncthreads();  // an earlier sum has been read
  if (lane_id() == 0) warps[threadIdx.x / 32] = own;
  __syncthreads();
  Pair sum = {0, 0};
  if (threadIdx.x == 0)
    for (u32 warp = 0; warp < blockDim.x / 32; warp++) sum += warps[warp];
  return sum;
}

// Of all blocks' numbers, for every thread. Called by whole blocks, after all have written theirs.
__device__ inline Pair sum_of_blocks(const Pair *blocks) {
  __shared__ Pair whole;
  if (threadIdx.x < 32) {
    Pair own = {0, 0};
    for (u32 block = lane_id(); block < gridDim.x; block += 32)
      own += {__ldcg(&blocks[block].one), __ldcg(&blocks[block].other)};
    own = lanes_sum(own);
    if (threadIdx.x == 0) whole = own;
  }
  __syncthreads();
  const Pair sum = whole;
  __syncthreads();  // before it is written again
  return sum;
}
