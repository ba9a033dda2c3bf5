// Push: follow the edges that leave the frontier; a thread an edge, whatever the degrees.
//
// The edges of the whole frontier are cut into strips of equal length, a warp each; a strip's first
// vertex is looked up in `before` (Liu et al.'s one thread an edge by scan and binary search).
//
// A SMALL level claims each vertex by an atomic operation that tells who came first, and queues it.
// So does a HOT one, where distances and parents stay in the second-level cache: it claims parents,
// of which fewer share a line than bits do, so that fewer wait for each other.
// A LARGE one leaves the distances, scattered writes to memory, to a pass over the bitmaps (`note`).
// A LAZY one makes no queue either: it marks vertices without waiting for an answer, and several
// threads may write a vertex's parent (any of them is right) and count it.
#include "bfs/enqueue.cuh"

enum Mode { SMALL, HOT, LARGE, LAZY };

template <class Offset, class Distance, bool TIERED, Mode MODE, class Name = Unchanged>
__device__ __noinline__ Tally push(const Graph<Offset> &graph,
                                   const Search<Offset, Distance> &search,
                                   const Queue<Offset> &queue, u32 frontier, u64 edges,
                                   u32 *visited, u32 level, Enqueue<Offset> next,
                                   Name name = {}, Crew crew = whole_grid()) {
  Tally tally = {};
  const u32 strip = strip_length(edges, crew.warps);
  for (u64 at = (u64)crew.warp * strip; at < edges; at += (u64)crew.warps * strip) {
    const u32 length = (u32)min((u64)strip, edges - at);
    u32 place = at ? find_place(queue.before, frontier, at) : 0;
    for (u32 edge = 0; edge < length; place += 32) {
      // 32 vertices, a lane each, and the edges of them that are in the strip: from `start` on, and
      // before the next 32 vertices' in any case.
      const u32 own = place + lane_id();
      const u64 before = own < frontier ? (u64)queue.before[own] : edges;
      const u64 behind = place + 32 < frontier ? (u64)queue.before[place + 32] : edges;
      const u32 vertex = own < frontier ? queue.vertex[own] : 0;
      const u32 start = before > at ? (u32)min(before - at, (u64)length) : 0;
      const u64 row = (own < frontier ? (u64)queue.row[own] : 0) + (before > at ? 0 : at - before);
      const u32 limit = (u32)min((u64)length, behind - at);
      for (; edge < limit; edge += 32 * UNROLL) {
        // Each step for all of them before the next one: what is under way is not waited for.
        u32 source[UNROLL], target[UNROLL], seen[UNROLL];
        bool fresh[UNROLL];
#pragma unroll
        for (int i = 0; i < UNROLL; i++) {
          const u32 mine = edge + i * 32 + lane_id();
          u32 owner = 0;
          for (int step = 16; step; step >>= 1)
            if (__shfl_sync(ALL, start, owner + step) <= mine) owner += step;
          source[i] = __shfl_sync(ALL, vertex, owner);
          const u64 entry_at = __shfl_sync(ALL, row, owner) + (mine - __shfl_sync(ALL, start, owner));
          target[i] = mine < limit ? entry<TIERED>(graph.targets, entry_at) : NONE;
        }
#pragma unroll
        for (int i = 0; i < UNROLL; i++)
          seen[i] = MODE == HOT ? fresh_word_of(visited, target[i]) : word_of(visited, target[i]);
#pragma unroll
        for (int i = 0; i < UNROLL; i++) {
          fresh[i] = target[i] != NONE && !bit_of(seen[i], target[i]);
          if (!fresh[i]) continue;
          if (MODE == HOT) seen[i] = atomicCAS(&search.parent[target[i]], NONE, name(source[i]));
          else seen[i] = atomicOr(&visited[target[i] >> 5], 1u << (target[i] & 31));
        }
#pragma unroll
        for (int i = 0; i < UNROLL; i++) {
          if (MODE == HOT) fresh[i] = fresh[i] && seen[i] == NONE;
          else if (MODE != LAZY) fresh[i] = fresh[i] && !bit_of(seen[i], target[i]);
          if (!fresh[i]) continue;
          if (MODE == SMALL || MODE == HOT) search.distance[target[i]] = (Distance)level;
          if (MODE == HOT) atomicOr(&visited[target[i] >> 5], 1u << (target[i] & 31));
          else search.parent[target[i]] = name(source[i]);
          tally.found++;
          name.found(target[i]);
        }
        if (MODE != LAZY) next.add(fresh, target);
      }
      edge = limit;
    }
    if (lane_id() == 0) tally.examined += length;
  }
  if (MODE != LAZY && next.count) next.flush();
  return tally;
}
