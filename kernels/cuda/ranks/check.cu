// Graph500's rules over what several ranks found of an undirected graph, each over the rows that it
// has: every edge stands in a row of both its ends.
#include "bfs/check.cuh"

// Of what a rank knows, by its numbers. distance: of others' vertices as their owners have it.
struct Claim {
  const int *distance;
  const u32 *parent;
  const u32 *global_id;
};

// Rules 3 and 4 of the edges of some rows, the first of which is vertex `first`; joined: bytes, set
// where one leads to a vertex's parent, one level up.
template <class Offset>
__global__ void check_edges(const Offset *__restrict__ offsets, const Targets targets, u64 edges,
                                 u32 rows, u32 first, Claim claim, u8 *joined, Report report) {
  FOR_STRIPS(strip, (edges + LONG_STRIP - 1) / LONG_STRIP) {
    const u64 begin = strip * LONG_STRIP, end = begin + LONG_STRIP < edges ? begin + LONG_STRIP : edges;
    const u32 low = row_of(offsets, 0, rows, begin);
    const u32 high = row_of(offsets, low, rows, end - 1) + 1;
    for (u64 e = begin + (threadIdx.x & 31); e < end; e += 32) {
      const u32 u = first + row_of(offsets, low, high, e), v = entry<true>(targets, e);
      const int from = claim.distance[u], to = claim.distance[v];
      if (from < 0) continue;
      if (to < 0 || to > from + 1) tell(report, to < 0 ? 4 : 3, (u64)u << 32 | v);
      if (from == to + 1 && claim.parent[u] == claim.global_id[v]) joined[u] = 1;
    }
  }
}
