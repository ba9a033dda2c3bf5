// What a search reads and writes. gpu/search.py packs the same structures.
#include "base/targets.cuh"
#include "base/warp.cuh"

#define NONE 0xffffffffu    // in `parent` and `first`: no vertex
#define LOOKS 32
#define NEXT 4              // entries in a place of `next`
#define LONGER 0xfffffffeu  // at the end of a padded row: it has more entries than that

// first: of each reverse row the first entry, a hub as a rule; next: those after it. NONE where
// there is none. looks[k]: entries that a vertex looks at in a pull, on average, if each is visited
// with probability 2^-k.
template <class Offset>
struct Graph {
  const Offset *offsets;
  const Offset *reverse_offsets;
  Targets targets;
  Targets reverse_targets;
  const u32 *first;
  const uint4 *next;
  u64 edges;
  u32 vertices;
  float looks[LOOKS];
};

// Vertices whose edges are to be followed: row[i] is where those of vertex[i] begin, before[i] how many
// those of vertices 0 .. i - 1 are.
template <class Offset>
struct Queue {
  u32 *vertex;
  Offset *row;
  Offset *before;
};

// What the threads have counted in one level.
// queued: vertices put in the queue (upper 24 bits) and the edges that leave them (lower 40).
// wasted: about how many entries were looked at in vain. rest: vertices, and entries of theirs, that a
// pull has left to all warps, counted as queued ones are; full: those that the list had room for, if
// it had not for all.
struct Counters {
  u64 queued;
  u64 found;
  u64 examined;
  u64 wasted;
  u64 rest;
  u64 full;
};

#define QUEUED(vertices, edges) (((u64)(vertices) << 40) | (edges))
#define QUEUED_VERTICES(queued) ((u32)((queued) >> 40))
#define QUEUED_EDGES(queued) ((queued) & (QUEUED(1, 0) - 1))

enum Status : u32 { RUNNING, DONE, WIDE, NARROW, WIDEN, MORE, EXCHANGE, STOPPED };

// Why ranks launch: a search begins, goes on, or goes on from mail that the host has carried; or
// ranks are only to meet, and to wake their links.
enum Stage : u32 { BEGIN, GO_ON, RECEIVE, MEET };

struct Control {
  u64 arrived;
  Counters counters[3];  // of this level, the next, and the one whose time is over
  u64 forward;
  u64 unvisited_edges;
  u64 pull_bound;
  u32 status;
  u32 level;     // distance of the frontier
  u32 frontier;  // vertices in the queue
  u32 found;     // vertices at that distance
  u32 visited;   // vertices in all
  u32 queued;    // whether the frontier stands in the queue
  u32 turn;      // which of two bitmaps (bit 0) and queues (bit 1) is the current one
  u32 partial;   // whether some of the next level has been found, and queued in the other queue
  u32 small_levels;  // that were small ones, one after the other
  float more;        // times as many entries as expected did the last pull look at
};

struct LevelRecord {
  u64 examined;
  u64 clocks;
  u32 found;
  u32 pulled;
};

template <class Offset, class Distance>
struct Search {
  Distance *distance;
  u32 *parent;
  u32 *visited[2];  // bitmaps, of whole strips
  Queue<Offset> queue[2];
  Queue<Offset> rest;  // what a pull leaves to all warps
  Control *control;
  LevelRecord *levels;
  u32 source;
  u32 resume;       // 0: begin at the source; 1: go on from `control`
  u32 first_level;  // whose record stands at levels[0]
  u32 level_capacity;
  u32 max_level;
  u32 enqueue_edges;  // vertices that a queue takes, and edges of a push that makes one
  u32 narrow_levels;  // leave for the narrow search after so many small levels; 0: never
  u32 narrow_frontier;  // vertices of a small level, at most, and a quarter of its edges
  u32 rest_capacity;
  u32 resident;     // whether distances and parents stay in the second-level cache
  float wait;       // entries that could be looked at while a pull waits for its loads
  float push_cost;  // of an edge, where looking at an entry in a pull costs 1
};

// What a vertex is called as a parent: by default what the graph's rows call it. noted: whether its
// distance is left to a pass after the level. found: is told of vertices, or of what becomes of
// a strip (pull.cuh).
struct Unchanged {
  __device__ bool noted(u32 vertex) const { return false; }
  __device__ u32 operator()(u32 vertex) const { return vertex; }
  __device__ void found(u32 vertex) const {}
  __device__ void found(const uint4 *before, const uint4 &after, u32 strip) const {}
};

__device__ inline bool has(const u32 *bitmap, u32 vertex) {
  return bitmap[vertex >> 5] >> (vertex & 31) & 1;
}

// The word that holds a vertex's bit; any word for NONE. Without a branch, so that many loads get
// under way.
__device__ inline u32 word_of(const u32 *bitmap, u32 vertex) {
  return bitmap[vertex == NONE ? 0 : vertex >> 5];
}

// The same past the first-level cache: what others have set is seen sooner, and fewer claim at once
// what many lead to.
__device__ inline u32 fresh_word_of(const u32 *bitmap, u32 vertex) {
  return __ldcg(bitmap + (vertex == NONE ? 0 : vertex >> 5));
}

__device__ inline bool bit_of(u32 word, u32 vertex) {
  return vertex != NONE && word >> (vertex & 31) & 1;
}

// Give some vertices of a word of a bitmap their distance, 32 bytes at once. Those in `keep` have
// theirs; what is written to the others does not matter.
__device__ inline void set_distances(u8 *distance, u32 w, u32 fresh, u32 keep, u32 level) {
  if (!fresh) return;
  uint4 *place = (uint4 *)(distance + w * 32ull);
  const u32 bytes = level * 0x01010101u;
  uint4 some[2] = {{bytes, bytes, bytes, bytes}, {bytes, bytes, bytes, bytes}};
  if (keep) {
#pragma unroll
    for (int half = 0; half < 2; half++) {
      const uint4 old = place[half];
      const u32 was[4] = {old.x, old.y, old.z, old.w};
      u32 now[4];
#pragma unroll
      for (int k = 0; k < 4; k++) {
        const u32 bits = keep >> (16 * half + 4 * k) & 15;
        const u32 mask = (bits * 0x00204081u & 0x01010101u) * 0xff;  // a byte for each bit
        now[k] = was[k] & mask | bytes & ~mask;
      }
      some[half] = {now[0], now[1], now[2], now[3]};
    }
  }
  place[0] = some[0];
  place[1] = some[1];
}

__device__ inline void set_distances(int *distance, u32 w, u32 fresh, u32 keep, u32 level) {
  for (; fresh; fresh &= fresh - 1) distance[w * 32ull + __ffs(fresh) - 1] = (int)level;
}

// What one thread counts within a level.
struct Tally {
  u32 found;
  u32 examined;
  u32 wasted;

  __device__ void operator+=(const Tally &more) {
    found += more.found;
    examined += more.examined;
    wasted += more.wasted;
  }

  // Called by whole blocks at the end of a level.
  __device__ void add_to(Counters &counters) const {
    u64 *const to[3] = {&counters.found, &counters.examined, &counters.wasted};
    add_sums({found, examined, wasted}, to);
  }
};
