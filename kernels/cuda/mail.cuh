// What ranks tell each other: vertices as a bitmap or, where that is shorter, as a list (Bisson,
// Bernaschi, Mastrostefano: Parallel Distributed BFS on the Kepler Architecture).
#include "rank.cuh"

// Memory that another device may have written, or has.
__device__ inline u32 far_load(const u32 *address) { return *(const volatile u32 *)address; }

// Write what is new in some words of a bitmap; `keep`: it is not new any more then. The list is
// whole if `count` is at most `words`. The warps of the grid share the words, 32 at a time.
__device__ inline void write_mail(const u32 *visited, u32 *kept, bool keep, u32 words, u32 *bitmap,
                                  u32 *list, u32 *count) {
  u32 warps = gridDim.x * (blockDim.x / 32);
  u32 warp = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  for (u32 w = warp * 32 + lane_id(); w < words; w += warps * 32) {
    u32 fresh = visited[w] & ~kept[w];
    bitmap[w] = fresh;
    if (keep && fresh) kept[w] |= fresh;
    if (!__any_sync(ALL, fresh)) continue;
    u32 through = warp_scan((u32)__popc(fresh)), base = 0;
    if (lane_id() == 31) base = atomicAdd(count, through);
    u32 at = __shfl_sync(ALL, base, 31) + through - __popc(fresh);
    for (; fresh && at < words; fresh &= fresh - 1) list[at++] = w * 32 + __ffs(fresh) - 1;
  }
}

// Take each of `count` vertices of a list, or of a bitmap of `words` words.
template <class Take>
__device__ inline void read_mail(const u32 *bitmap, const u32 *list, u32 count, u32 words,
                                 Take take) {
  if (count <= words) {
    u32 threads = gridDim.x * blockDim.x;
    for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += threads)
      take(far_load(list + i));
    return;
  }
  u32 warps = gridDim.x * (blockDim.x / 32);
  u32 warp = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  for (u32 base = warp * 32; base < words; base += warps * 32) {
    u32 own = far_load(bitmap + base + lane_id());
    for (u32 open = __ballot_sync(ALL, own != 0); open; open &= open - 1) {
      int lane = __ffs(open) - 1;
      if (__shfl_sync(ALL, own, lane) >> lane_id() & 1) take((base + lane) * 32 + lane_id());
    }
  }
}

// Put a vertex into a bitmap; whether it was not there.
__device__ inline bool admit(u32 *visited, u32 vertex) {
  u32 bit = 1u << (vertex & 31);
  return !(visited[vertex >> 5] & bit) && !(atomicOr(&visited[vertex >> 5], bit) & bit);
}

__device__ inline void release_far(u64 *address, u64 value) {
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(address), "l"(value) : "memory");
}

__device__ inline u64 acquire_far(const u64 *address) {
  u64 value;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(address) : "memory");
  return value;
}
