// Graph500's rules, as kernels/bfs/check.py has them, over a result and the rows of its graph. Edges
// are shared out evenly, whatever their rows: a warp takes some neighbouring ones and looks for their
// rows between those of the first and the last (Bisson et al., Parallel Distributed BFS on the Kepler
// Architecture: one thread an edge, by binary search).
#include "bfs/check.cuh"

// distance: u8, 255 where unreached; or int, negative there. parent: NONE where there is none.
// limit: the greatest distance that was asked for.
template <class Distance>
struct Claim {
  const Distance *distance;
  const u32 *parent;
  u32 vertices, source;
  int limit;
};

// Rules 1 and 2, but for parents that lead elsewhere than to the source: they break rule 2 as well,
// and are then looked for.
template <class Distance>
__global__ void check_vertices(Claim<Distance> claim, Report report) {
  FOR_ITEMS(v, claim.vertices) {
    const int at = level(claim.distance[v]);
    const u32 parent = claim.parent[v];
    const bool has_parent = parent != NONE, root = v == claim.source;
    const bool concerned = at >= 0 || has_parent || root;
    if ((has_parent == root && concerned) || (root && at != 0)) tell(report, 1, v);
    bool wrong = (!root && at == 0) || at > claim.limit;
    if (has_parent) {
      const int above = parent < claim.vertices ? level(claim.distance[parent]) : -1;
      wrong |= above < 0 || at != above + 1;
    }
    if (wrong) tell(report, 2, v);
  }
}

// Rules 3 and 4; joined: bytes, set where an edge comes from a vertex's parent.
template <class Offset, class Distance>
__global__ void check_edges(const Offset *__restrict__ offsets, const Targets targets, u64 edges,
                            Claim<Distance> claim, u8 *joined, Report report) {
  FOR_STRIPS(strip, (edges + LONG_STRIP - 1) / LONG_STRIP) {
    const u64 begin = strip * LONG_STRIP, end = begin + LONG_STRIP < edges ? begin + LONG_STRIP : edges;
    const u32 low = row_of(offsets, 0, claim.vertices, begin);
    const u32 high = row_of(offsets, low, claim.vertices, end - 1) + 1;
    for (u64 e = begin + (threadIdx.x & 31); e < end; e += 32) {
      const u32 u = row_of(offsets, low, high, e), v = entry<true>(targets, e);
      const int from = level(claim.distance[u]), to = level(claim.distance[v]);
      if (from < 0) continue;
      if (to < 0 ? from < claim.limit : to > from + 1)
        tell(report, to < 0 ? 4 : 3, (u64)u << 32 | v);
      if (claim.parent[v] == u) joined[v] = 1;
    }
  }
}

// Rule 5, after all edges.
__global__ void check_joined(const u32 *parent, const u8 *joined, u32 vertices, Report report) {
  FOR_ITEMS(v, vertices) {
    if (parent[v] != NONE && !joined[v]) tell(report, 5, v);
  }
}

// Vertices that are reached, and the sum of ``rows`` over them.
template <class Distance, class Count>
__global__ void count_reached(const Distance *distance, const Count *rows, u64 vertices, u64 *found) {
  u64 reached = 0, sum = 0;
  FOR_ITEMS(v, vertices) {
    if (level(distance[v]) < 0) continue;
    ++reached;
    sum += rows[v];
  }
  if (reached) atomicAdd(&found[0], reached);
  if (sum) atomicAdd(&found[1], sum);
}
