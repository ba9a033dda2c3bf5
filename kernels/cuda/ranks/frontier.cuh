// Frontiers that stand as bitmaps.
#include "bfs/enqueue.cuh"
#include "ranks/sharing.cuh"

// Queue the vertices of a word of the frontier for each lane. Called by whole warps.
template <class Offset>
__device__ inline void enqueue(const Graph<Offset> &graph, u32 w, u32 fresh,
                               Enqueue<Offset> &queue) {
  for (u32 open = __ballot_sync(ALL, fresh != 0); open; open &= open - 1) {
    int lane = __ffs(open) - 1;
    u32 vertex[1] = {__shfl_sync(ALL, w, lane) * 32 + lane_id()};
    bool mine[1] = {__shfl_sync(ALL, fresh, lane) >> lane_id() & 1 && vertex[0] < graph.vertices};
    queue.add(mine, vertex);
  }
}

// Queue what is in some words of a frontier, from word `begin` on.
template <class Offset>
__device__ __noinline__ void gather_frontier(const Graph<Offset> &graph, const u32 *frontier,
                                             u32 begin, u32 words, Enqueue<Offset> queue) {
  const Sharing sharing = Sharing::of_grid();
  for (u32 turn = 0; sharing.any(turn, words); turn++) {
    const u32 first = sharing.first(turn);
    u32 fresh[EACH_LANE];
    load_words(fresh, frontier + begin, first, words);
#pragma unroll
    for (int i = 0; i < EACH_LANE; i++) enqueue(graph, begin + first + i, fresh[i], queue);
  }
  if (queue.count) queue.flush();
}
