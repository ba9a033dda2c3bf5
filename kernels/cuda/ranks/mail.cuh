// What ranks tell each other: vertices as a bitmap or, where that is shorter, as a list (Bisson,
// Bernaschi, Mastrostefano: Parallel Distributed BFS on the Kepler Architecture).
#include "base/far.cuh"
#include "ranks/sharing.cuh"

#define AT_ONCE 4      // vertices of a lane
#define LISTED 16      // entries that may be looked at, for each word of a bitmap, to list finds
// What a rank writes for one of the others, or for all. The list is whole if `count` is at most
// `most`; without `listing` there is none, and `count` is more than that.
struct Outgoing {
  u32 words;
  u32 *bitmap;
  u32 *list;
  u32 *count;
  bool listing;
  u32 most = words;
  bool mapping = true;     // whether to write the bitmap; without it the list has to do
  u32 before = 0;          // words that vertices in the list count, too
};

// Write some words of a lane each, from `first` on, as mail. Called by whole warps.
__device__ inline void post(const u32 (&fresh)[EACH_LANE], u32 first, const Outgoing &mail) {
  if (mail.mapping && first < mail.words) store_words(mail.bitmap, first, fresh);
  u32 own = 0;
#pragma unroll
  for (int i = 0; i < EACH_LANE; i++) own += __popc(fresh[i]);
  if (!mail.listing || !__any_sync(ALL, own)) return;
  u32 through = warp_scan(own), base = 0;
  if (lane_id() == 31) base = atomicAdd(mail.count, through);
  u32 at = __shfl_sync(ALL, base, 31) + through - own;
#pragma unroll
  for (int i = 0; i < EACH_LANE; i++)
    for (u32 open = fresh[i]; open && at < mail.most; open &= open - 1)
      mail.list[at++] = (mail.before + first + i) * 32 + __ffs(open) - 1;
}

// Of mail without a list: that it has none. Called once by all threads, before or after `post`.
__device__ inline void post_no_list(const Outgoing &mail) {
  if (!mail.listing && blockIdx.x == 0 && threadIdx.x == 0) atomicAdd(mail.count, mail.most + 1);
}

// Write what is in `now` and not in `before`, some words each; enter it in `entered` and `finds`,
// where these are given. (See post_no_list.) changed: of what, by words; nothing is new elsewhere.
template <class Changed>
__device__ inline void write_mail(const u32 *now, const u32 *before, u32 *entered, u32 *finds,
                                  const Outgoing &mail, const Sharing &sharing, Changed changed) {
  for (u32 turn = 0; sharing.any(turn, mail.words); turn++) {
    const u32 first = sharing.first(turn);
    const u32 end = first < mail.words && changed(first) ? mail.words : 0;
    if (!mail.mapping && !__any_sync(ALL, end)) continue;
    u32 fresh[EACH_LANE], was[EACH_LANE], any = 0;
    load_words(fresh, now, first, end);
    load_words(was, before, first, end);
#pragma unroll
    for (int i = 0; i < EACH_LANE; i++) {
      fresh[i] &= ~was[i];
      any |= fresh[i];
    }
    if (any && entered) add_words(entered, first, fresh);
    if (any && finds) add_words(finds, first, fresh);
    post(fresh, first, mail);
  }
}

// How the blocks of the grid share letters: each letter is read, or written, by some of them, so that
// none waits for another one's memory, or by one block that has several.
struct Sharers {
  u32 first, step;       // letters
  u32 thread, threads;  // of those that have the same

  __device__ Sharing sharing() const { return {thread / 32, threads / 32}; }

  __device__ static Sharers of(u32 letters) {
    const u32 groups = max(min(letters, gridDim.x), 1u), group = blockIdx.x % groups;
    const u32 members = (gridDim.x - group + groups - 1) / groups;
    return {group, groups, blockIdx.x / groups * blockDim.x + threadIdx.x, members * blockDim.x};
  }
};

// Have `take` enter the vertices of a list of `count`, or of a bitmap of `words` words: some at once,
// as each of them is waited for.
template <class Take>
__device__ inline void read_mail(const u32 *bitmap, const u32 *list, u32 count, u32 words,
                                 const Sharers &sharers, Take take) {
  bool mine[AT_ONCE];
  u32 vertex[AT_ONCE];
  const u32 threads = sharers.threads;
  if (count <= words) {
    for (u32 at = sharers.thread; at < count; at += threads * AT_ONCE) {
#pragma unroll
      for (int i = 0; i < AT_ONCE; i++) {
        mine[i] = at + i * threads < count;
        vertex[i] = mine[i] ? far_load(list + at + i * threads) : 0;
      }
      take(mine, vertex);
    }
    return;
  }
  const u32 warp = sharers.thread / 32, warps = threads / 32;
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

// Have `enter` take the words of a bitmap that are not 0; `changed` is told where there are some.
template <class Enter>
__device__ inline void read_bitmap(const u32 *bitmap, u32 words, const Sharers &sharers,
                                   Enter enter, const Lines &changed = {}, u32 before = 0) {
  const u32 threads = sharers.threads;
  for (u32 line = sharers.thread & ~31; line < words; line += threads * AT_ONCE) {
    u32 theirs[AT_ONCE];
#pragma unroll
    for (int i = 0; i < AT_ONCE; i++) {
      const u32 at = line + i * threads + lane_id();
      theirs[i] = at < words ? far_load(bitmap + at) : 0;
    }
#pragma unroll
    for (int i = 0; i < AT_ONCE; i++) {
      const u32 at = line + i * threads;
      if (theirs[i]) enter(at + lane_id(), theirs[i]);
      if (__any_sync(ALL, theirs[i]) && lane_id() == 0) changed.mark((before + at) * 32);
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

// Read some of another device's memory: links that have been idle take some 100 us at first. Called by
// all threads.
__device__ inline void wake(const u32 *memory, u32 words) {
  const u32 place = (blockIdx.x * blockDim.x + threadIdx.x) * 64;
  if (place < words) far_load(memory + place);
}
