// Components by union-find: kernels/pieces/forest.py has the definition, and how it is done on a CPU
// (Sutton, Ben-Nun, Barak: Optimizing Parallel Graph Connectivity Computation via Subgraph Sampling,
// IPDPS 2018, Afforest). Here all of it is one launch.
#include "programs/rows.cuh"

#define SAMPLES 256    // vertices that tell which tree is the largest
#define NEIGHBOURS 2   // of each vertex, that are joined at first

// Others change a forest meanwhile: it is read past the first-level cache.
__device__ inline u32 parent_of(const u32 *forest, u32 vertex) { return __ldcg(forest + vertex); }

// Join the trees of two vertices. A root is claimed by compare-and-swap, and goes under a lesser one.
__device__ inline void join(u32 *forest, u32 u, u32 v) {
  u32 one = parent_of(forest, u), other = parent_of(forest, v);
  while (one != other) {
    const u32 high = max(one, other), low = min(one, other);
    const u32 above = parent_of(forest, high);
    if (above == low || (above == high && atomicCAS(forest + high, high, low) == high)) return;
    one = parent_of(forest, above);
    if (one != above) forest[high] = one;  // half the way next time
    other = parent_of(forest, low);
  }
}

// Make each vertex a child of its root.
__device__ inline void flatten(u32 *forest, u32 vertices) {
  FOR_ITEMS(v, vertices) {
    u32 root = parent_of(forest, v);
    for (u32 above; (above = parent_of(forest, root)) != root;) root = above;
    forest[v] = root;
  }
}

// Of a flat forest: the root of most samples, of several the least one. Called by whole blocks.
__device__ inline u32 root_of_most(const u32 *forest, u32 vertices) {
  __shared__ u32 roots[SAMPLES];
  __shared__ u64 best;
  for (u32 i = threadIdx.x; i < SAMPLES; i += blockDim.x)
    roots[i] = parent_of(forest, (u64)i * vertices / SAMPLES);
  if (threadIdx.x == 0) best = NO_KEY;
  __syncthreads();
  for (u32 i = threadIdx.x; i < SAMPLES; i += blockDim.x) {
    u32 others = SAMPLES;
    for (u32 k = 0; k < SAMPLES; k++) others -= roots[k] == roots[i];
    atomicMin(&best, (u64)others << 32 | roots[i]);
  }
  __syncthreads();
  return (u32)best;
}

// forest: of rows.rows vertices, each becomes a child of the least one that edges join it to. twice:
// whether every edge stands in the rows of both its ends. arrived: as of grid_barrier.
template <class Offset, bool TIERED, int THREADS, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS)
    components(const __grid_constant__ Rows<Offset> rows, u32 *forest, u32 twice, u64 *arrived) {
  // A vertex under a neighbour that is less: a forest, whoever writes first.
  FOR_ITEMS(v, rows.rows) {
    const Entries entries = entries_of(rows, v);
    const u32 nearest = entries.count() ? entry<TIERED>(rows.targets, entries.begin) : (u32)v;
    forest[v] = min(nearest, (u32)v);
  }
  grid_barrier(arrived);
  // That neighbour may be greater, and then is not joined yet, where it has not this edge, too.
  FOR_ITEMS(v, rows.rows) {
    const Entries entries = entries_of(rows, v);
    const u64 end = min(entries.end, entries.begin + NEIGHBOURS);
    for (u64 e = entries.begin; e < end; e++) join(forest, v, entry<TIERED>(rows.targets, e));
  }
  grid_barrier(arrived);
  flatten(forest, rows.rows);
  grid_barrier(arrived);
  // Every edge that leads out of the largest tree stands in another row, too.
  const u32 known = twice ? root_of_most(forest, rows.rows) : NONE;
  if (twice) grid_barrier(arrived);  // all have looked at the same forest, and know the same tree
  visit_rows(rows, whole_grid(), [&](u32 row, Entries whole, Entries some, u32 lane, u32 width) {
    if (row == NONE || whole.count() <= NEIGHBOURS || parent_of(forest, row) == known) return;
    some.begin = max(some.begin, whole.begin + NEIGHBOURS);
    for (u64 e = some.begin + lane; e < some.end; e += width)
      join(forest, row, entry<TIERED>(rows.targets, e));
  });
  grid_barrier(arrived);
  flatten(forest, rows.rows);
}

// Join each vertex with its label, which another rank has found. forest: flat before and after.
template <int THREADS, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS)
    join_labels(u32 *forest, const u32 *labels, u32 vertices, u64 *arrived) {
  FOR_ITEMS(v, vertices) join(forest, (u32)v, labels[v]);
  grid_barrier(arrived);
  flatten(forest, vertices);
}
