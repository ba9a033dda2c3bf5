// How the warps of a grid share bitmaps.
#include "search.cuh"

#define EACH_LANE 4  // words of a bitmap that it takes at a time
#define SECTOR 8     // words of memory that are fetched together

// How the warps of the grid share a bitmap: neighbouring sectors go to different warps, as hubs
// stand together. A turn is over the same words for all.
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
    const u32 lanes = SECTOR / EACH_LANE;  // for a sector
    const u32 sector = (turn * (32 / lanes) + lane_id() / lanes) * warps + warp;
    return sector * SECTOR + lane_id() % lanes * EACH_LANE;
  }
};

// Some words of a bitmap from `first` on; 0 past its end.
__device__ inline void load_words(u32 (&word)[EACH_LANE], const u32 *bitmap, u32 first, u32 words) {
  uint4 some = {0, 0, 0, 0};
  if (first < words) some = *(const uint4 *)(bitmap + first);
  word[0] = some.x, word[1] = some.y, word[2] = some.z, word[3] = some.w;
}

// Enter words in a bitmap of which nobody else writes these.
__device__ inline void add_words(u32 *bitmap, u32 first, const u32 (&word)[EACH_LANE]) {
  uint4 *place = (uint4 *)(bitmap + first);
  const uint4 some = *place;
  *place = {some.x | word[0], some.y | word[1], some.z | word[2], some.w | word[3]};
}
