// Shortest paths by buckets of distances: pipeline/algorithms/sssp.py has the rules, kernels/reference.py
// the definition. What is nearer than a limit stands in a queue, round after round; what is farther in
// a pile, from which the next bucket is taken (Davidson, Baxter, Garland, Owens: Work-Efficient Parallel
// GPU Methods for Single-Source Shortest Paths, IPDPS 2014, near-far). A launch does many rounds; one
// block does the small ones by itself, where all would wait for each other most of the time.
#include "programs/queue.cuh"
#include "programs/rows.cuh"

#define FAR 0x7ff0000000000000ull  // bits of the distance of what no path leads to
#define LITTLE 65536     // edges of a bucket that are no work: the next one is wider
#define FEW_EDGES 4      // for each vertex of the pile that was looked through for it, likewise
#define AGAIN 0.25       // of the vertices that leave a bucket, from which on the next one is narrower
#define NARROWEST 1e-30

// What all threads know between rounds. round: from 1 on. bucket_round: the first of the bucket, which
// holds distances from `begin` up to `limit`; piled: vertices among which it was looked for. edges, taken,
// again: as of Control, before the bucket.
struct State {
  u64 edges, taken, again;
  double begin, width, limit;
  u32 round, buckets, bucket_round;
  u32 piled;
  u32 done;
};

// arrived: as of grid_barrier. edges: followed, in all; taken: vertices put in queues; again: those of
// them that had been in one of the same bucket. least: no distance of the pile that is beyond the bucket
// is less, by the bucket's parity.
// queued: items of this round, the next, and the one whose time is over. piled: vertices of the piles.
// stop: whether the time of a launch is over, by the round's parity.
struct Control {
  u64 arrived;
  u64 edges, taken, again;
  u64 least[2];
  u32 queued[3];
  u32 piled[2];
  u32 stop[2];
  State state;
};

// distance: bits. queued_in: of each vertex the last round that it was queued for. queue: of an even and
// of an odd round. pile: of which the bucket's parity says which one is in use.
struct Paths {
  u64 *distance;
  u32 *queued_in;
  Item *queue[2];
  u32 *pile[2];
  Control *control;
  double most;    // paths are no longer
  u64 clocks;     // of a launch, about
  u32 few;        // items of a round that one block does; it leaves what has twice as many
  u32 few_piled;  // vertices of a pile that it looks through
  u32 stays;      // whether all is done with this bucket
};

__device__ inline u64 bits_of(double distance) { return (u64)__double_as_longlong(distance); }
__device__ inline double value_of(u64 bits) { return __longlong_as_double((long long)bits); }

// What other threads have written, past the first-level cache.
template <class T>
__device__ inline T fresh(const T &value) {
  return __ldcg(&value);
}

// Rounds and buckets by a gang (queue.cuh).
template <class Gang, class Offset, class Weight, bool TIERED>
struct Stepper {
  const Gang gang;
  const Rows<Offset> &rows;
  const Weight *weights;
  const Paths &paths;
  State state;

  // One round: the edges of what is queued shorten distances.
  __device__ void relax(u32 count) {
    Control &control = *paths.control;
    const u32 round = state.round, next = round + 1;
    const u32 turn = state.buckets & 1;
    const u64 limit = bits_of(state.limit);
    u64 least = FAR;
    u32 edges = 0, taken = 0, again = 0;
    auto distance_of = [&](u32 vertex) { return fresh(paths.distance[vertex]); };
    struct Seen {
      u32 vertex;
      Weight weight;
      u64 distance;
    };
    // (A distance that is not fresh is greater, and the atomic operation knows better.)
    auto look = [&](u64 edge) -> Seen {
      const u32 vertex = entry<TIERED>(rows.targets, edge);
      return {vertex, __ldg(weights + edge), paths.distance[vertex]};
    };
    follow(rows.offsets, paths.queue[round & 1], count, gang.crew(), distance_of, look,
           [&](u64 own, const Seen &seen, bool any) {
             u32 vertex = NONE, items = 0;
             bool piled = false;
             if (any) {
               edges++;
               vertex = seen.vertex;
               const double through = value_of(own) + (double)seen.weight;
               const u64 bits = bits_of(through);
               u64 before = 0;
               if (through <= paths.most && bits < seen.distance)
                 before = atomicMin(paths.distance + vertex, bits);
               if (bits < before && bits < limit) {
                 const u32 last = atomicExch(paths.queued_in + vertex, next);
                 if (last != next) {
                   items = items_of(rows.offsets, vertex);
                   taken++, again += last >= state.bucket_round;
                 }
               } else if (bits < before) {
                 piled = before == FAR;  // else it is there already
                 least = min(least, bits);
               }
             }
             push_items(paths.queue[next & 1], &control.queued[next % 3], vertex, items);
             push_vertex(paths.pile[turn], &control.piled[turn], vertex, piled);
           });
    u64 *const to[3] = {&control.edges, &control.taken, &control.again};
    add_sums({edges, taken, again}, to);
    note_least(least, turn);
  }

  // By whole warps.
  __device__ void note_least(u64 least, u32 turn) {
    if (!__any_sync(ALL, least < FAR)) return;
    for (u32 step = 16; step; step /= 2) least = min(least, __shfl_xor_sync(ALL, least, step));
    u64 &of_all = paths.control->least[turn];
    if (lane_id() == 0 && least < fresh(of_all)) atomicMin(&of_all, least);
  }

  // The next bucket, from the least distance in the pile on; whether there may be any. What is nearer
  // has been queued since it was piled.
  __device__ bool next_bucket() {
    Control &control = *paths.control;
    const u32 turn = state.buckets & 1;
    const u64 least = fresh(control.least[turn]), nearer = bits_of(state.limit);
    if (least == FAR) return false;
    widen_or_narrow();
    state.piled = fresh(control.piled[turn]);
    if (gang.leads()) control.least[turn ^ 1] = FAR;
    gang.meet();
    state.begin = value_of(least);
    state.limit = max(state.begin + state.width, nextafter(state.begin, value_of(FAR)));
    state.buckets++;
    state.bucket_round = state.round;
    split(paths.pile[turn], state.piled, turn, nearer);
    gang.meet();
    if (gang.leads()) control.piled[turn] = 0;
    return true;
  }

  // By what the bucket that is done has shown, while nobody counts.
  __device__ void widen_or_narrow() {
    const Control &control = *paths.control;
    const u64 edges = fresh(control.edges), taken = fresh(control.taken), again = fresh(control.again);
    if (edges - state.edges < max((u64)LITTLE, (u64)FEW_EDGES * state.piled))
      state.width *= 2;
    else if (again - state.again > AGAIN * (taken - state.taken))
      state.width = max(state.width / 2, NARROWEST);
    state.edges = edges, state.taken = taken, state.again = again;
  }

  // Queue what the bucket holds, and pile up anew what is beyond it.
  __device__ void split(const u32 *pile, u32 piled, u32 turn, u64 nearer) {
    Control &control = *paths.control;
    const u32 round = state.round;
    const u64 limit = bits_of(state.limit);
    u64 least = FAR;
    u32 taken = 0;
    for (u32 first = 0; first < piled; first += gang.threads()) {  // by whole warps
      const u32 i = first + gang.thread();
      const bool any = i < piled;
      const u32 vertex = any ? fresh(pile[i]) : NONE;
      const u64 distance = any ? fresh(paths.distance[vertex]) : 0;
      u32 items = 0;
      if (any && distance >= nearer && distance < limit) {
        paths.queued_in[vertex] = round;
        items = items_of(rows.offsets, vertex);
        taken++;
      }
      push_items(paths.queue[round & 1], &control.queued[round % 3], vertex, items);
      push_vertex(paths.pile[turn ^ 1], &control.piled[turn ^ 1], vertex, distance >= limit);
      if (distance >= limit) least = min(least, distance);
    }
    taken = warp_sum(taken);
    if (lane_id() == 0 && taken) atomicAdd(&control.taken, (u64)taken);
    note_least(least, turn ^ 1);
  }

  // Until nothing is left, the time is over, or rounds are not of the gang's size. began: by clock64.
  __device__ void run(u64 began) {
    Control &control = *paths.control;
    while (!state.done) {
      const u32 round = state.round, count = fresh(control.queued[round % 3]);
      if (fresh(control.stop[round & 1])) return;
      if (count == 0) {
        if (paths.stays) {
          state.done = 1;
          continue;
        }
        if (Gang::ALONE && fresh(control.piled[state.buckets & 1]) > paths.few_piled) return;
        state.done = !next_bucket();
        continue;
      }
      if (Gang::ALONE ? count > 2 * paths.few : count <= paths.few) return;
      if (gang.leads()) {
        control.queued[(round + 2) % 3] = 0;
        control.stop[(round + 1) & 1] = (u64)clock64() - began > paths.clocks;
      }
      relax(count);
      gang.meet();
      state.round++;
    }
  }
};

// Go on from control.state, for some time; state.done says when nothing is left.
template <class Offset, class Weight, bool TIERED, int THREADS, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS)
    shortest_paths(const __grid_constant__ Rows<Offset> rows, const Weight *weights,
                   const __grid_constant__ Paths paths) {
  Control &control = *paths.control;
  const Grid grid = {&control.arrived};
  const u64 began = clock64();
  State state = control.state;
  while (true) {
    Stepper<Grid, Offset, Weight, TIERED> together = {grid, rows, weights, paths, state};
    together.run(began);
    grid.meet();  // all have seen why they left
    if (blockIdx.x == 0) {
      Stepper<Alone, Offset, Weight, TIERED> alone = {{}, rows, weights, paths, together.state};
      alone.run(began);
      if (threadIdx.x == 0) control.state = alone.state;
    }
    grid.meet();
    state = control.state;
    if (state.done || fresh(control.stop[state.round & 1])) return;
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
