// Pull: every unvisited vertex looks for a visited neighbour, hubs first, and stops at one.
//
// A warp takes some thousands of vertices, lists those that are unvisited, and looks at 128 of them
// at a time: four a lane, so that many loads are under way. Most find their parent in `first`; the
// others are listed again and look at `next`, then go through their rows; rows that are still not
// through are read by the whole warp, and what is longer than that by the whole grid (pull_rest).
// What bounds this is the number of scattered reads: lists keep neighbours side by side, and
// `first` and `next` need no offsets. Masking and early exit: Yang, Buluc and Owens, Implementing
// Push-Pull Efficiently in GraphBLAS.
//
// Where few are unvisited (SPARSE), a warp goes on listing until it has enough to look at together:
// what it waits for are loads that follow from one another. It lists vertices then, not places among
// its strips, and marks what it finds in memory.
#include "bfs/enqueue.cuh"

#define STRIP_WORDS 4             // what a lane reads of a bitmap at once
#define STRIP (32 * STRIP_WORDS)  // vertices
#define MOST_STRIPS 24       // of a warp at a time
#define MANY 128             // vertices that a warp looks at together
#define FEW 64               // the same, if it is SPARSE
#define SPARSE_SHARE 128     // of all vertices, at most one in so many is looked for in a SPARSE pull
#define LANE_ENTRIES 16     // that a lane looks at alone
#define WARP_ENTRIES 4096   // that a warp looks at alone

// What a pull looks for: of some strips, the vertices whose bits `passed_over` leaves clear. By
// default all unvisited vertices of the leading strips.
struct Everyone {
  u32 strips;

  __device__ u32 strip(u32 i) const { return i; }
  __device__ uint4 passed_over(u32 strip, uint4 visited) const { return visited; }
};

__device__ inline u32 strips_of(u32 vertices) { return (vertices + STRIP - 1) / STRIP; }

// A warp's share of shared memory. Places count the vertices of the warp's strips; a SPARSE pull lists
// vertices.
union alignas(16) Scratch {
  u32 buffer[BUFFER];
  struct {
    u32 words[MOST_STRIPS * STRIP_WORDS];
    u16 unvisited[2 * MANY];
    u16 missed[2 * MANY];
    u16 left[2 * MANY];
  };
  struct {
    u32 unvisited[FEW + STRIP];
    u32 missed[2 * FEW];
    u32 left[2 * FEW];
  } few;
};

// Append the places of some lanes to a list.
template <class Place>
__device__ inline void append(Place *list, u32 &count, bool mine, u32 place) {
  u32 lanes = __ballot_sync(ALL, mine);
  if (mine) list[count + __popc(lanes & lanes_before())] = (Place)place;
  count += __popc(lanes);
}

// Drop the first SIZE entries of a list of more, but at most LONGEST.
template <u32 SIZE, u32 LONGEST, class Place>
__device__ inline void drop(Place *list, u32 &count) {
  __syncwarp();
  count -= SIZE;
#pragma unroll
  for (u32 base = 0; base < LONGEST - SIZE; base += 32) {
    const u32 at = base + lane_id();
    if (at < count) list[at] = list[SIZE + at];
  }
  __syncwarp();
}

template <class Offset, class Distance, bool TIERED, bool SPARSE, class Name, class Sought>
struct Pull {
  static constexpr u32 TOGETHER = SPARSE ? FEW : MANY;
  static constexpr int EACH = TOGETHER / 32;  // of a lane

  const Graph<Offset> &graph;
  const Search<Offset, Distance> &search;
  const u32 *before;
  const u32 *now;
  u32 *after;
  Scratch &scratch;
  Counters &counters;
  u32 level;
  u32 first;  // of the warp's strips
  u32 apart;  // one strip and the next
  Name name;
  Sought sought;
  Tally tally;
  u32 listed[3];  // of a SPARSE pull: unvisited, missed and left ones, from one run to the next

  __device__ auto *list_of_unvisited() {
    if constexpr (SPARSE) return scratch.few.unvisited;
    else return scratch.unvisited;
  }

  __device__ auto *list_of_missed() {
    if constexpr (SPARSE) return scratch.few.missed;
    else return scratch.missed;
  }

  __device__ auto *list_of_left() {
    if constexpr (SPARSE) return scratch.few.left;
    else return scratch.left;
  }

  __device__ u32 vertex_at(u32 place) {
    if (SPARSE) return place;
    return sought.strip(first + place / STRIP * apart) * STRIP + place % STRIP;
  }

  __device__ void reach(u32 place, u32 parent) {
    if (!name.noted(vertex_at(place))) search.distance[vertex_at(place)] = (Distance)level;
    search.parent[vertex_at(place)] = name(parent);
    const u32 bit = 1u << (place & 31);
    if (SPARSE) {
      atomicOr(&after[place >> 5], bit);
      name.found(place);
    } else {
      atomicOr(&scratch.words[place >> 5], bit);
    }
    tally.found++;
  }

  // Look at the first entries of listed vertices' rows; `missed` takes those without success.
  __device__ void look_first(u32 count, u32 &missed) {
    u32 place[EACH], hub[EACH], word[EACH];
    __syncwarp();
#pragma unroll
    for (int i = 0; i < EACH; i++) {
      u32 at = i * 32 + lane_id();
      place[i] = at < count ? list_of_unvisited()[at] : 0;
      hub[i] = at < count ? __ldg(graph.first + vertex_at(place[i])) : NONE;
    }
#pragma unroll
    for (int i = 0; i < EACH; i++) word[i] = word_of(before, hub[i]);
#pragma unroll
    for (int i = 0; i < EACH; i++) {
      bool found = bit_of(word[i], hub[i]);
      if (hub[i] != NONE) tally.examined++;
      if (found) reach(place[i], hub[i]);
      append(list_of_missed(), missed, hub[i] != NONE && !found, place[i]);
    }
  }

  // Look at the next entries; `left` takes those vertices that have more.
  __device__ void look_next(u32 count, u32 &left) {
    u32 place[EACH], parent[EACH];
    uint4 next[EACH];
    __syncwarp();
#pragma unroll
    for (int i = 0; i < EACH; i++) {
      u32 at = i * 32 + lane_id();
      place[i] = at < count ? list_of_missed()[at] : 0;
      next[i] = uint4{NONE, NONE, NONE, NONE};
      if (at < count) next[i] = __ldg(graph.next + vertex_at(place[i])), tally.wasted++;
    }
    // Two entries at a time: the second two are looked at only where they are needed.
    u32 word[EACH][2];
#pragma unroll
    for (int i = 0; i < EACH; i++) {
      word[i][0] = word_of(before, next[i].x);
      word[i][1] = word_of(before, next[i].y);
    }
#pragma unroll
    for (int i = 0; i < EACH; i++) {
      parent[i] = look_at(next[i].x, next[i].y, word[i]);
      word[i][0] = word_of(before, parent[i] == NONE ? next[i].z : NONE);
      word[i][1] = word_of(before, parent[i] == NONE ? next[i].w : NONE);
    }
#pragma unroll
    for (int i = 0; i < EACH; i++) {
      if (parent[i] == NONE) parent[i] = look_at(next[i].z, next[i].w, word[i]);
      if (parent[i] != NONE) reach(place[i], parent[i]);
      append(list_of_left(), left, parent[i] == NONE && next[i].w != NONE, place[i]);
    }
  }

  // The first of two entries that is visited, else NONE; with the words of their bits.
  __device__ u32 look_at(u32 one, u32 other, const u32 (&word)[2]) {
    bool first = bit_of(word[0], one), second = bit_of(word[1], other);
    u32 looked = (one != NONE) + (other != NONE && !first);
    tally.examined += looked;
    if (!first && !second) tally.wasted += looked;
    return first ? one : second ? other : NONE;
  }

  // Look through the rest of the rows.
  __device__ void look_on(u32 count) {
    u32 place[EACH], parent[EACH];
    Offset at[EACH], end[EACH];
    __syncwarp();
#pragma unroll
    for (int i = 0; i < EACH; i++) {
      bool mine = i * 32 + lane_id() < count;
      place[i] = mine ? list_of_left()[i * 32 + lane_id()] : 0;
      u32 vertex = vertex_at(place[i]);
      at[i] = mine ? graph.reverse_offsets[vertex] + 1 + NEXT : 0;
      end[i] = mine ? graph.reverse_offsets[vertex + 1] : 0;
      parent[i] = NONE;
    }
    bool open = true;
    for (u32 seen = 0; seen < LANE_ENTRIES && __any_sync(ALL, open); seen += 2) {
      u32 target[EACH][2];
#pragma unroll
      for (int i = 0; i < EACH; i++)
#pragma unroll
        for (int k = 0; k < 2; k++)
          target[i][k] = parent[i] == NONE && at[i] + k < end[i]
                             ? entry<TIERED>(graph.reverse_targets, at[i] + k)
                             : NONE;
      open = false;
      u32 word[EACH][2];
#pragma unroll
      for (int i = 0; i < EACH; i++)
#pragma unroll
        for (int k = 0; k < 2; k++) word[i][k] = word_of(before, target[i][k]);
#pragma unroll
      for (int i = 0; i < EACH; i++) {
        if (parent[i] == NONE && at[i] < end[i]) {
          parent[i] = look_at(target[i][0], target[i][1], word[i]);
          at[i] += 2;
        }
        open |= parent[i] == NONE && at[i] < end[i];
      }
    }
#pragma unroll
    for (int i = 0; i < EACH; i++) {
      for (u32 lanes = __ballot_sync(ALL, parent[i] == NONE && at[i] < end[i]); lanes;
           lanes &= lanes - 1)
        look_together(__ffs(lanes) - 1, place[i], at[i], end[i], parent[i]);
      if (parent[i] != NONE) reach(place[i], parent[i]);
    }
  }

  // The whole warp reads on in the row of one lane.
  __device__ void look_together(int lane, u32 place, Offset &at, Offset end, u32 &parent) {
    Offset from = __shfl_sync(ALL, at, lane), to = __shfl_sync(ALL, end, lane);
    Offset started = from, stop = min((u64)to, (u64)from + WARP_ENTRIES);
    u32 seen = NONE;
    for (; from < stop && seen == NONE; from += 32) {
      u32 target = NONE;
      if (from + lane_id() < stop)
        target = entry<TIERED>(graph.reverse_targets, from + lane_id());
      u32 hits = __ballot_sync(ALL, target != NONE && has(before, target));
      if (hits) seen = __shfl_sync(ALL, target, __ffs(hits) - 1);
    }
    if ((int)lane_id() != lane) return;
    parent = seen;
    at = min(from, stop);
    tally.examined += (u32)(at - started);
    if (seen != NONE) return;
    tally.wasted += (u32)(at - started);
    if (at < end) search.rest[atomicAdd(&counters.rest, 1ull)] = vertex_at(place);
  }

  // Some strips of the warp. draining: until nothing is listed any more.
  __device__ void run(u32 count, bool draining) {
    bool mine = lane_id() < count;
    u32 strip = sought.strip(first + lane_id() * apart);
    uint4 full = {ALL, ALL, ALL, ALL};
    uint4 own = mine ? ((const uint4 *)now)[strip] : full;
    if (mine) {
      if (SPARSE) ((uint4 *)after)[strip] = own;
      else ((uint4 *)scratch.words)[lane_id()] = own;
      own = sought.passed_over(strip, own);
    }
    u32 unvisited = 0, missed = 0, left = 0;
    if (SPARSE) unvisited = listed[0], missed = listed[1], left = listed[2];
    u32 open = __ballot_sync(ALL, (own.x & own.y & own.z & own.w) != ALL);
    if (!SPARSE)
      for (u32 place = lane_id() * 32; place < count * STRIP; place += 32 * 32)
        if (vertex_at(place) < graph.vertices && open) prefetch(graph.first + vertex_at(place));
    while (open || ((!SPARSE || draining) && (unvisited || missed || left))) {
      if (open && unvisited < TOGETHER) {
        int lane = __ffs(open) - 1;
        open &= open - 1;
        u32 word[STRIP_WORDS] = {__shfl_sync(ALL, own.x, lane), __shfl_sync(ALL, own.y, lane),
                                __shfl_sync(ALL, own.z, lane), __shfl_sync(ALL, own.w, lane)};
        u32 begin = lane * STRIP;
        if (SPARSE) begin = __shfl_sync(ALL, strip, lane) * STRIP;
#pragma unroll
        for (int i = 0; i < STRIP_WORDS; i++) {
          u32 place = begin + i * 32 + lane_id();
          bool wanted = !(word[i] >> lane_id() & 1) && vertex_at(place) < graph.vertices;
          append(list_of_unvisited(), unvisited, wanted, place);
        }
      } else if (left >= TOGETHER || !(unvisited || missed)) {
        look_on(min(left, TOGETHER));
        if (left > TOGETHER) drop<TOGETHER, 2 * TOGETHER>(list_of_left(), left);
        else left = 0;
      } else if (missed >= TOGETHER || !unvisited) {
        look_next(min(missed, TOGETHER), left);
        if (missed > TOGETHER) drop<TOGETHER, 2 * TOGETHER>(list_of_missed(), missed);
        else missed = 0;
      } else {
        look_first(min(unvisited, TOGETHER), missed);
        if (unvisited > TOGETHER) drop<TOGETHER, TOGETHER + STRIP>(list_of_unvisited(), unvisited);
        else unvisited = 0;
      }
    }
    __syncwarp();
    if (SPARSE) {
      listed[0] = unvisited, listed[1] = missed, listed[2] = left;
    } else if (mine) {
      const uint4 words = ((uint4 *)scratch.words)[lane_id()];
      ((uint4 *)after)[strip] = words;
      name.found((const uint4 *)now, words, strip);
    }
    __syncwarp();
  }
};

template <class Offset, class Distance, bool TIERED, bool SPARSE, class Sought, class Name>
__device__ inline Tally pull_strips(const Graph<Offset> &graph,
                                   const Search<Offset, Distance> &search, const u32 *before,
                                   const u32 *now, u32 *after, Sought sought, Scratch &scratch,
                                   Counters &counters, u32 level, Name name) {
  u32 warps = gridDim.x * (blockDim.x / 32);
  // Neighbouring strips go to different multiprocessors, and a warp's strips come from all over:
  // vertices stand by degree, and what is hard to find stands together.
  u32 warp = threadIdx.x / 32 * gridDim.x + blockIdx.x;
  Pull<Offset, Distance, TIERED, SPARSE, Name, Sought> pull = {
      graph, search, before, now, after, scratch, counters, level, 0, warps, name, sought, {}, {}};
  const u32 most = SPARSE ? 32 : MOST_STRIPS;
  for (pull.first = warp; pull.first < sought.strips; pull.first += most * warps) {
    const u32 strips = (sought.strips - pull.first + warps - 1) / warps;
    pull.run(min(most, strips), strips <= most);
  }
  return pull.tally;
}

// before: bitmap in which neighbours are looked for. now: bitmap of the vertices not to look for;
// after: what it becomes with those found. (Both ways in one function: two took registers from it.)
template <class Offset, class Distance, bool TIERED, class Sought, class Name = Unchanged>
__device__ __noinline__ Tally pull(const Graph<Offset> &graph,
                                   const Search<Offset, Distance> &search, const u32 *before,
                                   const u32 *now, u32 *after, Sought sought, Scratch &scratch,
                                   Counters &counters, u32 level, bool sparse,
                                   Name name = {}) {
  if (sparse)
    return pull_strips<Offset, Distance, TIERED, true>(graph, search, before, now, after, sought,
                                                      scratch, counters, level, name);
  return pull_strips<Offset, Distance, TIERED, false>(graph, search, before, now, after, sought,
                                                     scratch, counters, level, name);
}

// Whether a pull for so many, or fewer, is to be SPARSE.
template <class Sought>
__device__ inline bool is_sparse(const Sought &sought, u64 unvisited) {
  return unvisited < (u64)sought.strips * STRIP / SPARSE_SHARE;
}

// The rows that were too long for a warp, read by the whole grid.
template <class Offset, class Distance, bool TIERED, class Name = Unchanged>
__device__ __noinline__ Tally pull_rest(const Graph<Offset> &graph,
                                        const Search<Offset, Distance> &search, const u32 *before,
                                        u32 *after, u32 count, u32 level, Name name = {}) {
  Tally tally = {};
  u64 threads = (u64)gridDim.x * blockDim.x;
  u64 thread = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  for (u32 i = 0; i < count; i++) {
    u32 vertex = __ldcg(search.rest + i);
    u64 end = graph.reverse_offsets[vertex + 1];
    u64 at = (u64)graph.reverse_offsets[vertex] + WARP_ENTRIES + thread;
    u32 bit = 1u << (vertex & 31);
    for (; at < end; at += threads) {
      if (__ldcg(after + (vertex >> 5)) & bit) break;
      tally.examined++;
      u32 target = entry<TIERED>(graph.reverse_targets, at);
      if (!has(before, target)) {
        tally.wasted++;
      } else if (!(atomicOr(&after[vertex >> 5], bit) & bit)) {
        if (!name.noted(vertex)) search.distance[vertex] = (Distance)level;
        search.parent[vertex] = name(target);
        name.found(vertex);
        tally.found++;
      }
    }
  }
  return tally;
}
