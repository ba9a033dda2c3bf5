// What ranks tell each other: vertices as a bitmap or, where that is shorter, as a list (Bisson,
// Bernaschi, Mastrostefano: Parallel Distributed BFS on the Kepler Architecture).
#include "sharing.cuh"

#define AT_ONCE 4  // vertices of a lane

// Memory that another device may have written, or has.
template <class T>
__device__ inline T far_load(const T *address) {
  return *(const volatile T *)address;
}

// What a rank writes for one of the others, or for all. The list is whole if `count` is at most
// `words`; without `listing` there is none, and `count` is more than that.
struct Outgoing {
  u32 words;
  u32 *bitmap;
  u32 *list;
  u32 *count;
  bool listing;
};

// Write some words of a lane each, from `first` on, as mail. Called by whole warps.
__device__ inline void post(const u32 (&fresh)[EACH_LANE], u32 first, const Outgoing &mail) {
  if (first < mail.words)
    *(uint4 *)(mail.bitmap + first) = uint4{fresh[0], fresh[1], fresh[2], fresh[3]};
  u32 own = 0;
#pragma unroll
  for (int i = 0; i < EACH_LANE; i++) own += __popc(fresh[i]);
  if (!mail.listing || !__any_sync(ALL, own)) return;
  u32 through = warp_scan(own), base = 0;
  if (lane_id() == 31) base = atomicAdd(mail.count, through);
  u32 at = __shfl_sync(ALL, base, 31) + through - own;
#pragma unroll
  for (int i = 0; i < EACH_LANE; i++)
    for (u32 open = fresh[i]; open && at < mail.words; open &= open - 1)
      mail.list[at++] = (first + i) * 32 + __ffs(open) - 1;
}

// Of mail without a list: that it has none. Called by all threads, before or after `post`.
__device__ inline void post_no_list(const Outgoing &mail) {
  if (!mail.listing && blockIdx.x == 0 && threadIdx.x == 0) atomicAdd(mail.count, mail.words + 1);
}

// Write what is in `now` and not in `before`, some words each; enter it in `entered` and `finds`,
// where these are given. The warps of the grid share the words.
__device__ inline void write_mail(const u32 *now, const u32 *before, u32 *entered, u32 *finds,
                                  const Outgoing &mail) {
  post_no_list(mail);
  const Sharing sharing = Sharing::of_grid();
  for (u32 turn = 0; sharing.any(turn, mail.words); turn++) {
    const u32 first = sharing.first(turn);
    u32 fresh[EACH_LANE], was[EACH_LANE];
    load_words(fresh, now, first, mail.words);
    load_words(was, before, first, mail.words);
#pragma unroll
    for (int i = 0; i < EACH_LANE; i++) {
      fresh[i] &= ~was[i];
      if (entered && fresh[i]) entered[first + i] |= fresh[i];
      if (finds && fresh[i]) finds[first + i] |= fresh[i];
    }
    post(fresh, first, mail);
  }
}

// Have `take` enter the vertices of a list of `count`, or of a bitmap of `words` words: some at once,
// as each of them is waited for.
template <class Take>
__device__ inline void read_mail(const u32 *bitmap, const u32 *list, u32 count, u32 words,
                                 Take take) {
  bool mine[AT_ONCE];
  u32 vertex[AT_ONCE];
  if (count <= words) {
    u32 threads = gridDim.x * blockDim.x;
    for (u32 at = blockIdx.x * blockDim.x + threadIdx.x; at < count; at += threads * AT_ONCE) {
#pragma unroll
      for (int i = 0; i < AT_ONCE; i++) {
        mine[i] = at + i * threads < count;
        vertex[i] = mine[i] ? far_load(list + at + i * threads) : 0;
      }
      take(mine, vertex);
    }
    return;
  }
  u32 warps = gridDim.x * (blockDim.x / 32);
  u32 warp = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  const u32 share = min((words + warps - 1) / warps, 32u);
  for (u32 base = warp * share; base < words; base += warps * share) {
    bool inside = lane_id() < share && base + lane_id() < words;
    u32 own = inside ? far_load(bitmap + base + lane_id()) : 0;
    for (u32 open = __ballot_sync(ALL, own != 0); open;) {
#pragma unroll
      for (int i = 0; i < AT_ONCE; i++) {
        int lane = open ? __ffs(open) - 1 : 0;
        mine[i] = __shfl_sync(ALL, own, lane) >> lane_id() & 1 && open;
        vertex[i] = (base + lane) * 32 + lane_id();
        open &= open - 1;
      }
      take(mine, vertex);
    }
  }
}

// Enter vertices that a peer found first. ghost: its places of them in `parents`, which it has, or,
// where that cannot be read, in `wanted`. With DISTANCES, else the note gives them theirs.
template <bool DISTANCES, class Offset, class Distance>
__device__ inline void enter_found(const bool (&mine)[AT_ONCE], const u32 (&ghost)[AT_ONCE],
                                   const u32 (&vertex)[AT_ONCE], const u32 *parents, u32 *wanted,
                                   const Search<Offset, Distance> &search, u32 *visited,
                                   u32 level) {
  u32 found[AT_ONCE];
  bool fresh[AT_ONCE];
#pragma unroll
  for (int k = 0; k < AT_ONCE; k++)
    fresh[k] = mine[k] && !bit_of(word_of(visited, vertex[k]), vertex[k]);
#pragma unroll
  for (int k = 0; k < AT_ONCE; k++) {
    u32 bit = 1u << (vertex[k] & 31);
    if (fresh[k]) fresh[k] = !(atomicOr(&visited[vertex[k] >> 5], bit) & bit);
  }
#pragma unroll
  for (int k = 0; k < AT_ONCE; k++)
    found[k] = fresh[k] && parents ? far_load(parents + ghost[k]) : NONE;
#pragma unroll
  for (int k = 0; k < AT_ONCE; k++) {
    if (!fresh[k]) continue;
    search.parent[vertex[k]] = found[k];
    if (DISTANCES) search.distance[vertex[k]] = (Distance)level;
    if (!parents) atomicOr(&wanted[ghost[k] >> 5], 1u << (ghost[k] & 31));
  }
}

__device__ inline void release_far(u64 *address, u64 value) {
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(address), "l"(value) : "memory");
}

__device__ inline u64 acquire_far(const u64 *address) {
  u64 value;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(address) : "memory");
  return value;
}
