// How the warps of a grid share bitmaps.
#include "bfs/search.cuh"

#define EACH_LANE 4  // words of a bitmap that it takes at a time
#define LINE 32      // words of memory that stand together: the bits of 1024 vertices

// Which lines of bitmaps something has changed in since all were cleared.
struct Lines {
  u32 *bits;  // null: nobody needs to be told

  __device__ bool has(u32 word) const {
    const u32 line = word / LINE;
    return bits[line >> 5] >> (line & 31) & 1;
  }

  __device__ void mark(u32 vertex) const {
    if (!bits) return;
    const u32 line = vertex / (32 * LINE), bit = 1u << (line & 31);
    if (!(bits[line >> 5] & bit)) atomicOr(&bits[line >> 5], bit);
  }
};

// How warps share a bitmap: neighbouring lines go to different warps, as hubs stand together. A turn
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
    const u32 lanes = LINE / EACH_LANE;  // for a line
    const u32 line = (turn * (32 / lanes) + lane_id() / lanes) * warps + warp;
    return line * LINE + lane_id() % lanes * EACH_LANE;
  }
};

// Some words of a bitmap from `first` on; 0 past its end.
__device__ inline void load_words(u32 (&word)[EACH_LANE], const u32 *bitmap, u32 first, u32 words) {
  uint4 some = {0, 0, 0, 0};
  if (first < words) some = *(const uint4 *)(bitmap + first);
  word[0] = some.x, word[1] = some.y, word[2] = some.z, word[3] = some.w;
}

__device__ inline void store_words(u32 *bitmap, u32 first, const u32 (&word)[EACH_LANE]) {
  *(uint4 *)(bitmap + first) = uint4{word[0], word[1], word[2], word[3]};
}

// Enter words in a bitmap of which nobody else writes these.
__device__ inline void add_words(u32 *bitmap, u32 first, const u32 (&word)[EACH_LANE]) {
  u32 some[EACH_LANE];
  load_words(some, bitmap, first, first + 1);
#pragma unroll
  for (int i = 0; i < EACH_LANE; i++) some[i] |= word[i];
  store_words(bitmap, first, some);
}
