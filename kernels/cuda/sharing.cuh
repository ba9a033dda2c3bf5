// How the warps of a grid share bitmaps.
#include "search.cuh"

#define EACH_LANE 8  // words of a bitmap that it takes at a time: what memory fetches together

// How warps share a bitmap: neighbouring words go to different warps, as hubs stand together. A turn
// is over the same words for all.
struct Sharing {
  u32 warp, warps;

  __device__ static Sharing of_grid() {
    return {blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, gridDim.x * (blockDim.x / 32)};
  }

  __device__ bool any(u32 turn, u32 words) const {
    return (u64)turn * warps * 32 * EACH_LANE < words;
  }

  // The first of this lane's words; it may lie past the end.
  __device__ u32 first(u32 turn) const {
    return ((turn * 32 + lane_id()) * warps + warp) * EACH_LANE;
  }
};

// Some words of a bitmap from `first` on; 0 past its end.
__device__ inline void load_words(u32 (&word)[EACH_LANE], const u32 *bitmap, u32 first, u32 words) {
#pragma unroll
  for (int i = 0; i < EACH_LANE; i += 4) {
    uint4 some = {0, 0, 0, 0};
    if (first < words) some = *(const uint4 *)(bitmap + first + i);
    word[i] = some.x, word[i + 1] = some.y, word[i + 2] = some.z, word[i + 3] = some.w;
  }
}

__device__ inline void store_words(u32 *bitmap, u32 first, const u32 (&word)[EACH_LANE]) {
#pragma unroll
  for (int i = 0; i < EACH_LANE; i += 4)
    *(uint4 *)(bitmap + first + i) = {word[i], word[i + 1], word[i + 2], word[i + 3]};
}

// Enter words in a bitmap of which nobody else writes these.
__device__ inline void add_words(u32 *bitmap, u32 first, const u32 (&word)[EACH_LANE]) {
  u32 some[EACH_LANE];
  load_words(some, bitmap, first, first + 1);
#pragma unroll
  for (int i = 0; i < EACH_LANE; i++) some[i] |= word[i];
  store_words(bitmap, first, some);
}
