// Push: follow the edges that leave the frontier; a thread an edge, whatever the degrees.
//
// The edges of the whole frontier are cut into strips of equal length, a warp each; a strip's first
// vertex is looked up in `before` (Liu et al.'s one thread an edge by scan and binary search).
//
// A SMALL level claims each vertex by an atomic operation that tells who came first, and queues it.
// A LARGE one leaves the distances, scattered writes to memory, to a pass over the bitmaps (`note`).
// A LAZY one makes no queue either: it marks vertices without waiting for an answer, and several
// threads may write a vertex's parent (any of them is right) and count it.
#include "bfs/enqueue.cuh"

enum Mode { SMALL, LARGE, LAZY };

#define UNROLL 4
#define LONGEST_STRIP 1024

// The last of `count` places whose `before` is at most `edge`: 32 probes at a time.
template <class Offset>
__device__ inline u32 find_place(const Offset *before, u32 count, u64 edge) {
  u32 low = 0;
  while (count > 1) {
    u32 step = (count + 31) / 32;
    u32 probe = low + lane_id() * step;
    bool within = lane_id() * step < count && before[probe] <= edge;
    u32 last = 31 - __clz(__ballot_sync(ALL, within));
    low += last * step;
    count = min(step, count - last * step);
  }
  return low;
}

template <class Offset, class Distance, bool TIERED, Mode MODE, class Name = Unchanged>
__device__ __noinline__ Tally push(const Graph<Offset> &graph,
                                   const Search<Offset, Distance> &search,
                                   const Queue<Offset> &queue, u32 frontier, u64 edges,
                                   u32 *visited, u32 level, Enqueue<Offset> next,
                                   Name name = {}) {
  Tally tally = {};
  u32 warps = gridDim.x * (blockDim.x / 32);
  u32 warp = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  u64 share = (edges + warps - 1) / warps;
  u32 strip = (u32)min((u64)LONGEST_STRIP, (share + 31) / 32 * 32);
  for (u64 at = (u64)warp * strip; at < edges; at += (u64)warps * strip) {
    u64 stop = min(at + strip, edges);
    u32 place = find_place(queue.before, frontier, at);
    for (u64 edge = at; edge < stop; place += 32) {
      // 32 vertices, a lane each, and the edges of them that are in the strip.
      u32 own = place + lane_id();
      u64 before = own < frontier ? (u64)queue.before[own] : edges;
      u32 vertex = own < frontier ? queue.vertex[own] : 0;
      u64 row = own < frontier ? (u64)queue.row[own] : 0;
      u64 limit = min(stop, place + 32 < frontier ? (u64)queue.before[place + 32] : edges);
      for (; edge < limit; edge += 32 * UNROLL) {
        // Each step for all of them before the next one: what is under way is not waited for.
        u32 source[UNROLL], target[UNROLL], seen[UNROLL];
        bool fresh[UNROLL];
#pragma unroll
        for (int i = 0; i < UNROLL; i++) {
          u64 mine = edge + i * 32 + lane_id();
          u32 owner = 0;
          for (int step = 16; step; step >>= 1)
            if (__shfl_sync(ALL, before, owner + step) <= mine) owner += step;
          source[i] = __shfl_sync(ALL, vertex, owner);
          u64 entry_at = __shfl_sync(ALL, row, owner) + mine - __shfl_sync(ALL, before, owner);
          target[i] = mine < limit ? entry<TIERED>(graph.targets, entry_at) : NONE;
        }
#pragma unroll
        for (int i = 0; i < UNROLL; i++) seen[i] = word_of(visited, target[i]);
#pragma unroll
        for (int i = 0; i < UNROLL; i++) {
          fresh[i] = target[i] != NONE && !bit_of(seen[i], target[i]);
          if (fresh[i]) seen[i] = atomicOr(&visited[target[i] >> 5], 1u << (target[i] & 31));
        }
#pragma unroll
        for (int i = 0; i < UNROLL; i++) {
          if (MODE != LAZY) fresh[i] = fresh[i] && !bit_of(seen[i], target[i]);
          if (!fresh[i]) continue;
          if (MODE == SMALL) search.distance[target[i]] = (Distance)level;
          tally.found++;
          name.found(target[i]);
          search.parent[target[i]] = name(source[i]);
        }
        if (MODE != LAZY) next.add(fresh, target);
      }
      edge = limit;
    }
    if (lane_id() == 0) tally.examined += stop - at;
  }
  if (MODE != LAZY && next.count) next.flush();
  return tally;
}
