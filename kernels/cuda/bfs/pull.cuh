// Pull: every unvisited vertex looks for a visited neighbour, hubs first, and stops at one.
//
// A warp takes some thousands of vertices, lists those that are unvisited, and looks at 128 of them
// at a time: four a lane, so that many loads are under way. Most find their parent in `first`; the
// others are listed again and look at `next`, then go through their rows; rows that are still not
// through are read by the whole warp, as long as that is no more than its other work, and else left to
// all warps, an equal share each (pull_rest): whatever the degrees, and whatever is unvisited.
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
#define LANE_ENTRIES 16     // that a lane looks at alone, so many at a time:
#define LANE_AT_ONCE 4
#define OWN_ENTRIES 256     // that a warp reads of rows which are not through then,
#define OWN_SHARE 4         // and one more for each so many vertices that it looks for
#define READ_UNROLL 8
#define LONGEST_READ (1u << 20)  // of a row at once

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

// The warp reads `length` entries from `row` on for each lane, as if they stood one after the other, and
// gives each lane one that is visited, or NONE. Lanes that are not `open`, or have one, are passed over.
// (By value: what a function that is called is told by address stands in memory, from then on.)
struct Reading {
  u32 parent;    // NONE or one that is visited
  u32 examined;  // by this lane, for any

  __device__ void count(Tally &tally) const {
    tally.examined += examined;
    tally.wasted += examined - (examined && parent != NONE);
  }
};

template <bool TIERED>
__device__ __noinline__ Reading read_rows(const Targets &targets, const u32 *before, u64 row,
                                          u32 length, bool open) {
  const u32 start = warp_scan(length) - length, total = __shfl_sync(ALL, start + length, 31);
  u32 parent = NONE, examined = 0;
  for (u32 at = 0; at < total; at += 32 * READ_UNROLL) {
    u32 owner[READ_UNROLL], target[READ_UNROLL], word[READ_UNROLL];
#pragma unroll
    for (int i = 0; i < READ_UNROLL; i++) {
      const u32 mine = at + i * 32 + lane_id();
      owner[i] = 0;
      for (int step = 16; step; step >>= 1)
        if (__shfl_sync(ALL, start, owner[i] + step) <= mine) owner[i] += step;
      const bool wanted = __shfl_sync(ALL, (u32)open, owner[i]);
      const u64 entry_at =
          __shfl_sync(ALL, row, owner[i]) + mine - __shfl_sync(ALL, start, owner[i]);
      target[i] = mine < total && wanted ? entry<TIERED>(targets, entry_at) : NONE;
    }
#pragma unroll
    for (int i = 0; i < READ_UNROLL; i++) word[i] = word_of(before, target[i]);
#pragma unroll
    for (int i = 0; i < READ_UNROLL; i++) {
      const bool found = bit_of(word[i], target[i]);
      examined += target[i] != NONE;
      for (u32 finders = __ballot_sync(ALL, found); finders;) {
        const int finder = __ffs(finders) - 1;
        const u32 lane = __shfl_sync(ALL, owner[i], finder);
        const u32 visited = __shfl_sync(ALL, target[i], finder);
        if (lane_id() == lane && parent == NONE) parent = visited, open = false;
        finders &= ~__ballot_sync(ALL, owner[i] == lane);
      }
    }
    if (!__any_sync(ALL, open && start + length > at + 32 * READ_UNROLL)) break;
  }
  return {parent, examined};
}

template <class Offset, class Distance, bool TIERED, bool SPARSE, class Name, class Sought,
          class To>
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
  To to;
  Tally tally;
  u32 listed[3];  // of a SPARSE pull: unvisited, missed and left ones, from one run to the next
  u32 budget;     // entries that the warp still reads of long rows
  bool full;      // what is left to all warps has no more room

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
    budget += count / OWN_SHARE;
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
      if (SPARSE && to.wanted()) to.add(found, place[i]);
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
      const u32 two[2] = {next[i].x, next[i].y};
      parent[i] = look_at(two, word[i]);
      word[i][0] = word_of(before, parent[i] == NONE ? next[i].z : NONE);
      word[i][1] = word_of(before, parent[i] == NONE ? next[i].w : NONE);
    }
#pragma unroll
    for (int i = 0; i < EACH; i++) {
      const u32 two[2] = {next[i].z, next[i].w};
      if (parent[i] == NONE) parent[i] = look_at(two, word[i]);
      if (parent[i] != NONE) reach(place[i], parent[i]);
      if (SPARSE && to.wanted()) to.add(parent[i] != NONE, place[i]);
      append(list_of_left(), left, parent[i] == NONE && next[i].w != NONE, place[i]);
    }
  }

  // The first of some entries that is visited, else NONE; with the words of their bits.
  template <int N>
  __device__ u32 look_at(const u32 (&target)[N], const u32 (&word)[N]) {
    u32 found = NONE, looked = 0;
#pragma unroll
    for (int k = 0; k < N; k++) {
      looked += target[k] != NONE && found == NONE;
      if (found == NONE && bit_of(word[k], target[k])) found = target[k];
    }
    tally.examined += looked;
    if (found == NONE) tally.wasted += looked;
    return found;
  }

  // Look through the rest of the rows, some entries of each. Gives how many are not through: the
  // first ones in their list then.
  __device__ u32 look_on(u32 count) {
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
    for (u32 seen = 0; seen < LANE_ENTRIES && __any_sync(ALL, open); seen += LANE_AT_ONCE) {
      u32 target[EACH][LANE_AT_ONCE];
#pragma unroll
      for (int i = 0; i < EACH; i++)
#pragma unroll
        for (int k = 0; k < LANE_AT_ONCE; k++)
          target[i][k] = parent[i] == NONE && at[i] + k < end[i]
                             ? entry<TIERED>(graph.reverse_targets, at[i] + k)
                             : NONE;
      open = false;
      u32 word[EACH][LANE_AT_ONCE];
#pragma unroll
      for (int i = 0; i < EACH; i++)
#pragma unroll
        for (int k = 0; k < LANE_AT_ONCE; k++) word[i][k] = word_of(before, target[i][k]);
#pragma unroll
      for (int i = 0; i < EACH; i++) {
        if (parent[i] == NONE && at[i] < end[i]) {
          parent[i] = look_at(target[i], word[i]);
          at[i] += LANE_AT_ONCE;
        }
        open |= parent[i] == NONE && at[i] < end[i];
      }
    }
    u32 longer = 0;
#pragma unroll
    for (int i = 0; i < EACH; i++) {
      if (parent[i] != NONE) reach(place[i], parent[i]);
      if (SPARSE && to.wanted()) to.add(parent[i] != NONE, place[i]);
      append(list_of_left(), longer, parent[i] == NONE && at[i] < end[i], place[i]);
    }
    return longer;
  }

  // The whole warp reads on in rows that are not through, behind what has been read of them, or leaves
  // them to all warps.
  __device__ void read_on(u32 count, u32 read) {
    for (u32 base = 0; base < count; base += 32) {
      __syncwarp();
      const bool mine = base + lane_id() < count;
      const u32 place = mine ? list_of_left()[base + lane_id()] : 0, vertex = vertex_at(place);
      u64 at = mine ? graph.reverse_offsets[vertex] + read : 0;
      const u64 end = mine ? graph.reverse_offsets[vertex + 1] : 0;
      const u32 total = warp_sum((u32)min(end - at, (u64)LONGEST_READ));
      if (total > budget && !full) {
        full = !leave(vertex, at, end - at);
        if (!full) continue;
      }
      budget -= min(budget, total);
      u32 parent = NONE;
      // (Once, but for rows that are longer, and that the list had no room for.)
      for (bool open = mine; __any_sync(ALL, open);) {
        const u32 length = open ? (u32)min(end - at, (u64)LONGEST_READ) : 0;
        const Reading reading =
            read_rows<TIERED>(graph.reverse_targets, before, at, length, open);
        reading.count(tally);
        if (open) parent = reading.parent;
        at += length;
        open = open && parent == NONE && at < end;
      }
      if (parent != NONE) reach(place, parent);
      if (SPARSE && to.wanted()) to.add(parent != NONE, place);
    }
  }

  // Put the lanes' rows in the list of the rest; false if it has no room, for nobody from then on.
  __device__ bool leave(u32 vertex, u64 at, u64 length) {
    const u32 leaving = __ballot_sync(ALL, length != 0);
    const u64 through = warp_scan(length);
    const u64 all = QUEUED(__popc(leaving), __shfl_sync(ALL, through, 31));
    u64 base = 0;
    if (lane_id() == 0) base = atomicAdd(&counters.rest, all);
    base = __shfl_sync(ALL, base, 0);
    if (QUEUED_VERTICES(base + all) > search.rest_capacity) {
      if (QUEUED_VERTICES(base) <= search.rest_capacity) counters.full = base;  // one warp only
      return false;
    }
    if (length) {
      const u32 index = QUEUED_VERTICES(base) + __popc(leaving & lanes_before());
      search.rest.vertex[index] = vertex;
      search.rest.row[index] = (Offset)at;
      search.rest.before[index] = (Offset)(QUEUED_EDGES(base) + through - length);
    }
    return true;
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
    budget = OWN_ENTRIES;
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
        // Where a warp has a strip or none, lanes that read on alone would keep the others waiting.
        const u32 some = min(left, TOGETHER);
        if (sought.strips <= apart) read_on(some, 1 + NEXT);
        else read_on(look_on(some), 1 + NEXT + LANE_ENTRIES);
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
    if (!SPARSE && to.wanted()) add_found(count);
    __syncwarp();
  }

  // Put what the warp has found of its strips where it goes.
  __device__ void add_found(u32 strips) {
    for (u32 i = 0; i < strips * STRIP_WORDS; i++) {
      const u32 strip = sought.strip(first + i / STRIP_WORDS * apart);
      const u32 fresh = scratch.words[i] & ~now[strip * STRIP_WORDS + i % STRIP_WORDS];
      to.add(fresh >> lane_id() & 1, strip * STRIP + i % STRIP_WORDS * 32 + lane_id());
    }
  }
};

template <class Offset, class Distance, bool TIERED, bool SPARSE, class Sought, class Name,
          class To>
__device__ inline Tally pull_strips(const Graph<Offset> &graph,
                                   const Search<Offset, Distance> &search, const u32 *before,
                                   const u32 *now, u32 *after, Sought sought, Scratch &scratch,
                                   Counters &counters, u32 level, Name name, To to) {
  u32 warps = gridDim.x * (blockDim.x / 32);
  // Neighbouring strips go to different multiprocessors, and a warp's strips come from all over:
  // vertices stand by degree, and what is hard to find stands together.
  u32 warp = threadIdx.x / 32 * gridDim.x + blockIdx.x;
  Pull<Offset, Distance, TIERED, SPARSE, Name, Sought, To> pull = {
      graph, search, before, now, after, scratch, counters, level, 0, warps, name, sought, to, {}, {},
      0, false};
  const u32 most = SPARSE ? 32 : MOST_STRIPS;
  for (pull.first = warp; pull.first < sought.strips; pull.first += most * warps) {
    const u32 strips = (sought.strips - pull.first + warps - 1) / warps;
    pull.run(min(most, strips), strips <= most);
  }
  return pull.tally;
}

// before: bitmap in which neighbours are looked for. now: bitmap of the vertices not to look for;
// after: what it becomes with those found. (Both ways in one function: two took registers from it.)
template <class Offset, class Distance, bool TIERED, class Sought, class Name = Unchanged,
          class To = Nowhere>
__device__ __noinline__ Tally pull(const Graph<Offset> &graph,
                                   const Search<Offset, Distance> &search, const u32 *before,
                                   const u32 *now, u32 *after, Sought sought, Scratch &scratch,
                                   Counters &counters, u32 level, bool sparse,
                                   Name name = {}, To to = {}) {
  if (sparse)
    return pull_strips<Offset, Distance, TIERED, true>(graph, search, before, now, after, sought,
                                                      scratch, counters, level, name, to);
  return pull_strips<Offset, Distance, TIERED, false>(graph, search, before, now, after, sought,
                                                     scratch, counters, level, name, to);
}

// Whether a pull for so many, or fewer, is to be SPARSE.
template <class Sought>
__device__ inline bool is_sparse(const Sought &sought, u64 unvisited) {
  return unvisited < (u64)sought.strips * STRIP / SPARSE_SHARE;
}

// What warps have left of rows, in shares of equal length.
template <class Offset, class Distance, bool TIERED, class Name = Unchanged, class To = Nowhere>
__device__ __noinline__ Tally pull_rest(const Graph<Offset> &graph,
                                        const Search<Offset, Distance> &search, const u32 *before,
                                        u32 *after, const Counters &left, u32 level,
                                        Name name = {}, To to = {}) {
  Tally tally = {};
  const Crew crew = whole_grid();
  const Queue<Offset> &rest = search.rest;
  const u64 all = __ldcg(&left.rest);
  const u64 listed = QUEUED_VERTICES(all) > search.rest_capacity ? __ldcg(&left.full) : all;
  const u32 rows = QUEUED_VERTICES(listed);
  const u64 entries = QUEUED_EDGES(listed);
  const u32 strip = strip_length(entries, crew.warps);
  for (u64 at = (u64)crew.warp * strip; at < entries; at += (u64)crew.warps * strip) {
    const u64 stop = min(at + strip, entries);
    u32 place = find_place(rest.before, rows, at);
    for (u64 begin = at; begin < stop; place += 32) {
      // 32 rows, a lane each, and what is in the strip of them.
      const u32 own = place + lane_id();
      const bool mine = own < rows;
      const u64 first = mine ? (u64)rest.before[own] : entries;
      const u64 end = own + 1 < rows ? (u64)rest.before[own + 1] : entries;
      const u64 from = max(begin, first), until = min(stop, end);
      const u32 length = mine && from < until ? (u32)(until - from) : 0;
      const u32 vertex = mine ? rest.vertex[own] : 0, bit = 1u << (vertex & 31);
      const u64 row = mine ? (u64)rest.row[own] + (from - first) : 0;
      const bool open = length && !(__ldcg(after + (vertex >> 5)) & bit);
      const Reading reading =
          read_rows<TIERED>(graph.reverse_targets, before, row, length, open);
      reading.count(tally);
      const u32 parent = reading.parent;
      const bool first_one = parent != NONE && !(atomicOr(&after[vertex >> 5], bit) & bit);
      if (first_one) {
        if (!name.noted(vertex)) search.distance[vertex] = (Distance)level;
        search.parent[vertex] = name(parent);
        name.found(vertex);
        tally.found++;
      }
      if (to.wanted()) to.add(first_one, vertex);
      begin = __shfl_sync(ALL, min(stop, end), 31);
    }
  }
  return tally;
}
