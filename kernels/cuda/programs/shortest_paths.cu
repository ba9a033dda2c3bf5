// Shortest paths of one device, or of ranks that tell each other between launches, and parents of all. A launch
// does many rounds (paths.cuh); one block does the small ones by itself, where all would wait for each
// other most of the time.
#include "programs/paths.cuh"

// Go on from control.state, for some time; state.done says when nothing is left.
template <class Distance, class Offset, class Weight, bool TIERED>
__device__ inline void go_on(const Rows<Offset> &rows, const Weight *weights, const Paths &paths) {
  Control &control = *paths.control;
  const Grid grid = {&control.arrived};
  const u64 began = clock64();
  State state = control.state;
  while (true) {
    Stepper<Grid, Nobody, Offset, Weight, TIERED, Distance> together = {grid, {}, rows, weights, paths, state};
    together.run(began);
    grid.meet();  // all have seen why they left
    if (blockIdx.x == 0) {
      Stepper<Alone, Nobody, Offset, Weight, TIERED, Distance> alone = {{}, {}, rows, weights, paths,
                                                                        together.state};
      alone.run(began);
      if (threadIdx.x == 0) control.state = alone.state;
    }
    grid.meet();
    state = control.state;
    if (state.done || fresh(control.stop[state.round & 1])) return;
  }
}

template <class Offset, class Weight, bool TIERED, int THREADS, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS)
    shortest_paths(const __grid_constant__ Rows<Offset> rows, const Weight *weights,
                   const __grid_constant__ Paths paths) {
  go_on<Floats, Offset, Weight, TIERED>(rows, weights, paths);
}

template <class Offset, class Weight, bool TIERED, int THREADS, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS)
    whole_paths(const __grid_constant__ Rows<Offset> rows, const Weight *weights,
                const __grid_constant__ Paths paths) {
  go_on<Whole, Offset, Weight, TIERED>(rows, weights, paths);
}

// What stands as of Whole: the parents, and distances as of Floats in their place.
__global__ void take_apart(u64 *distance, u32 vertices, u32 *parent) {
  FOR_ITEMS(vertex, vertices) {
    const u64 bits = distance[vertex];
    parent[vertex] = (u32)bits;
    distance[vertex] = bits == Whole::NOWHERE ? FAR : bits_of(Whole::value(bits));
  }
}

// parent: NONE before; of each vertex the least one that is nearer and that a shortest path leads through.
template <class Offset, class Weight, bool TIERED, int THREADS, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS)
    adopt_nearer(const __grid_constant__ Rows<Offset> rows, const Weight *weights,
                 const u64 *distance, u32 *parent) {
  visit_rows(rows, whole_grid(), [&](u32 row, Entries, Entries some, u32 lane, u32 width) {
    const u64 own = row == NONE ? FAR : distance[row];
    if (own == FAR) return;
    for (u64 e = some.begin + lane; e < some.end; e += width) {
      const u32 vertex = entry<TIERED>(rows.targets, e);
      const u64 there = distance[vertex];
      if (own < there && bits_of(value_of(own) + (double)weights[e]) == there)
        atomicMin(parent + vertex, row);
    }
  });
}

// Vertices that are marked (`queued_in` is 1) into the queue of round 1.
template <class Offset>
__global__ void queue_marked(const Offset *offsets, u32 vertices, const __grid_constant__ Paths paths) {
  FOR_STRIPS(strip, ((u64)vertices + 31) / 32) {
    const u64 vertex = strip * 32 + lane_id();
    const bool marked = vertex < vertices && paths.queued_in[vertex];
    push_items(paths.queue[1], &paths.control->queued[1], vertex,
               marked ? items_of(offsets, vertex) : 0);
  }
}

// Where only edges that weigh nothing, or so little that the sum is the same, end the paths to a vertex:
// outwards from those of queue_marked, round by round. paths.queued_in is 0 for all others.
template <class Offset, class Weight, bool TIERED, int THREADS, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS)
    adopt_alike(const __grid_constant__ Rows<Offset> rows, const Weight *weights,
                const __grid_constant__ Paths paths, u32 *parent) {
  Control &control = *paths.control;
  const Grid grid = {&control.arrived};
  for (u32 round = 1;; round++) {
    const u32 count = fresh(control.queued[round % 3]), next = round + 1;
    if (count == 0) return;
    if (grid.leads()) control.queued[(round + 2) % 3] = 0;
    struct Seen {
      u32 vertex;
      Weight weight;
    };
    auto itself = [](u32 vertex) { return vertex; };
    auto look = [&](u64 edge) -> Seen {
      return {entry<TIERED>(rows.targets, edge), __ldg(weights + edge)};
    };
    follow(rows.offsets, paths.queue[round & 1], count, grid.crew(), itself, look,
           [&](u32 own, const Seen &seen, bool any) {
             u32 vertex = NONE, items = 0;
             if (any) {
               vertex = seen.vertex;
               const u64 there = paths.distance[vertex];
               const u32 since = fresh(paths.queued_in[vertex]);
               const bool orphan = since == 0 || since == next;
               if (orphan && paths.distance[own] == there &&
                   bits_of(value_of(there) + (double)seen.weight) == there) {
                 atomicMin(parent + vertex, own);
                 if (atomicExch(paths.queued_in + vertex, next) == 0)
                   items = items_of(rows.offsets, vertex);
               }
             }
             push_items(paths.queue[next & 1], &control.queued[next % 3], vertex, items);
           });
    grid.meet();
  }
}
