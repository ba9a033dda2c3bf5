// Components by union-find: kernels/programs/forest.py has the definition, and how it is done on a CPU
// (Sutton, Ben-Nun, Barak: Optimizing Parallel Graph Connectivity Computation via Subgraph Sampling,
// IPDPS 2018, Afforest). Here all of it is one launch.
#include "programs/forest.cuh"
#include "programs/rows.cuh"

#define SAMPLES 256    // vertices that tell which tree is the largest
#define NEIGHBOURS 2   // of each vertex, that are joined at first

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

// A flat forest, by the first neighbours of each vertex.
template <class Offset, bool TIERED>
__device__ inline void plant(const Rows<Offset> &rows, u32 *forest, u64 *arrived) {
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
    for (u64 e = entries.begin; e < end; e++) join(forest, v, entry<TIERED>(rows.targets, e), Pairs{});
  }
  grid_barrier(arrived);
  flatten(forest, rows.rows);
}

// Join the edges that `plant` has left. Where every edge stands in the rows of both its ends, those of the
// largest tree need no look: an edge that leads out of it stands in another row, too.
template <class Offset, bool TIERED>
__device__ inline void join_rest(const Rows<Offset> &rows, u32 *forest, bool twice, const Pairs &joined,
                                 u64 *arrived) {
  const u32 known = twice ? root_of_most(forest, rows.rows) : NONE;
  if (twice) grid_barrier(arrived);  // all have looked at the same forest, and know the same tree
  visit_rows(rows, whole_grid(), [&](u32 row, Entries whole, Entries some, u32 lane, u32 width) {
    if (row == NONE || whole.count() <= NEIGHBOURS || parent_of(forest, row) == known) return;
    some.begin = max(some.begin, whole.begin + NEIGHBOURS);
    for (u64 e = some.begin + lane; e < some.end; e += width)
      join(forest, row, entry<TIERED>(rows.targets, e), joined);
  });
}

// forest: of rows.rows vertices, each becomes a child of the least one that edges join it to. twice:
// whether every edge stands in the rows of both its ends. arrived: as of grid_barrier.
template <class Offset, bool TIERED, int THREADS, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS)
    components(const __grid_constant__ Rows<Offset> rows, u32 *forest, u32 twice, u64 *arrived) {
  plant<Offset, TIERED>(rows, forest, arrived);
  grid_barrier(arrived);
  join_rest<Offset, TIERED>(rows, forest, twice, Pairs{}, arrived);
  grid_barrier(arrived);
  flatten(forest, rows.rows);
}

// The same of ranks with a share of the edges each, step by step. They agree on what all of them have
// planted, so that all pass over the same tree, whose other rows may be another's.

template <class Offset, bool TIERED, int THREADS, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS)
    plant_share(const __grid_constant__ Rows<Offset> rows, u32 *forest, u64 *arrived) {
  plant<Offset, TIERED>(rows, forest, arrived);
}

// What others are told of a flat forest. members: a bit for each vertex of the largest tree; root: its root;
// others: each other vertex that is no root, with its root.
template <int THREADS, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS)
    tell_forest(const u32 *forest, u32 vertices, u32 *members, u32 *root,
                const __grid_constant__ Pairs others) {
  const u32 known = root_of_most(forest, vertices);
  if (first_item() == 0) *root = known;
  FOR_STRIPS(strip, (vertices + 31) / 32) {
    const u32 v = 32 * strip + lane_id();
    const u32 own = v < vertices ? parent_of(forest, v) : NONE;
    const u32 bits = __ballot_sync(ALL, own == known);
    if (lane_id() == 0) members[strip] = bits;
    if (v < vertices && own != known && own != v) others.add(v, own);
  }
}

// What another rank has told: of a whole forest its labels, or else members of a tree and its root, if any,
// and pairs. forest: flat afterwards. joined: what has become of it.
template <int THREADS, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS)
    join_told(u32 *forest, u32 vertices, const u32 *labels, const u32 *members, const u32 *root,
              const u32 *pairs, u32 count, const __grid_constant__ Pairs joined, u64 *arrived) {
  if (labels) FOR_ITEMS(v, vertices) join(forest, v, labels[v], joined);
  if (members)
    FOR_ITEMS(v, vertices) if (has_bit(members, v)) join(forest, v, *root, joined);
  FOR_ITEMS(i, count) join(forest, pairs[2 * i], pairs[2 * i + 1], joined);
  grid_barrier(arrived);
  flatten(forest, vertices);
}

// Join the edges of a share that are left. forest: what all have agreed on, flat; not flat afterwards.
template <class Offset, bool TIERED, int THREADS, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS)
    join_share(const __grid_constant__ Rows<Offset> rows, u32 *forest, u32 twice,
               const __grid_constant__ Pairs joined, u64 *arrived) {
  join_rest<Offset, TIERED>(rows, forest, twice, joined, arrived);
}
