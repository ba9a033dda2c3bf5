// Shortest paths by ranks that have shares of the edges, and each other's memory: rounds as of paths.cuh. What
// a rank queues for a round the others hear before it begins, and let it shorten their distances; what
// lies beyond the bucket is a rank's own, until its bucket comes. All of it is one launch.
#include "programs/meeting.cuh"
#include "programs/paths.cuh"

enum { TOLD, LEAST, EDGES, TAKEN, RETAKEN, PILED, OVER };  // what ranks say where they meet

// met: how often ranks have. said: by all of them together, the last time. news: of this rank, in all; told: how
// many vertices stand in its lists of even and odd rounds. stopped: whether a rank did not come.
struct Heard {
  u64 met;
  u64 said[SAID];
  u64 news;
  u32 told[2];
  u32 stopped;
};

// distance, news: of each rank; this one's own stand there, too. news: what a rank has queued, for an even
// round, and from `vertices` on for an odd one.
struct Shared {
  u64 *const *distance;
  u32 *const *news;
  Heard *heard;
  Meeting meeting;
  u32 vertices;
};

struct Everybody {
  const Shared &shared;

  __device__ u32 *list_of(u32 rank, u32 round) const {
    return shared.news[rank] + (u64)(round & 1) * shared.vertices;
  }
  __device__ void hear(u32 round, u32 vertex, bool queued) const {
    push_vertex(list_of(shared.meeting.rank, round), &shared.heard->told[round & 1], vertex, queued);
  }
};

// All blocks of all ranks meet: what they have written is seen then, and what they say is in `heard`. Whether
// they go on. over: whether this rank's time is.
__device__ inline bool meet_all(const Shared &shared, Control &control, const State &state, u64 over) {
  Heard &heard = *shared.heard;
  __threadfence_system();
  grid_barrier(&control.arrived);
  if (blockIdx.x == 0) {
    const u32 turn = state.buckets & 1;
    const u64 round = fresh(heard.met) + 1;
    const u64 said[SAID] = {fresh(heard.told[state.round & 1]), fresh(control.least[turn]),
                            fresh(control.edges), fresh(control.taken), fresh(control.again),
                            fresh(control.piled[turn]), over};
    const bool all = meet(shared.meeting, round, said);
    for (u32 what = threadIdx.x; what < SAID; what += blockDim.x) {
      u64 sum = what == LEAST ? FAR : 0;
      for (u32 peer = 0; peer < shared.meeting.ranks; peer++) {
        const u64 value = far_load(shared.meeting.of(peer, round)->said + what);
        sum = what == LEAST ? min(sum, value) : sum + value;
      }
      heard.said[what] = sum;
    }
    if (threadIdx.x == 0) heard.met = round, heard.stopped = !all;
  }
  grid_barrier(&control.arrived);
  return !fresh(heard.stopped);
}

// What the others have queued for this round shortens distances here.
template <class Offset>
__device__ inline void take_news(const Rows<Offset> &rows, const Paths &paths, const Shared &shared,
                                 u32 round) {
  Control &control = *paths.control;
  const Everybody others = {shared};
  const Meeting &meeting = shared.meeting;
  for (u32 step = 1; step < meeting.ranks; step++) {
    const u32 peer = (meeting.rank + step) % meeting.ranks;
    const u32 count = (u32)far_load(meeting.of(peer, fresh(shared.heard->met))->said + TOLD);
    const u32 *news = others.list_of(peer, round);
    for (u64 i = first_item(); i - lane_id() < count; i += items_apart()) {  // by whole warps
      u32 vertex = NONE, items = 0;
      if (i < count) {
        vertex = far_load(news + i);
        const u64 there = far_load(shared.distance[peer] + vertex);
        if (there < fresh(paths.distance[vertex]) && there < atomicMin(paths.distance + vertex, there) &&
            atomicExch(paths.queued_in + vertex, round) != round)
          items = items_of(rows.offsets, vertex);
      }
      push_items(paths.queue[round & 1], &control.queued[round % 3], vertex, items);
    }
  }
}

// Go on from control.state, for some time; all ranks end with the same state, which says whether anything is
// left.
template <class Offset, class Weight, bool TIERED, int THREADS, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS)
    shared_paths(const __grid_constant__ Rows<Offset> rows, const Weight *weights,
                 const __grid_constant__ Paths paths, const __grid_constant__ Shared shared) {
  Control &control = *paths.control;
  const Heard &heard = *shared.heard;
  const Grid grid = {&control.arrived};
  const u64 began = clock64();
  using Steps = Stepper<Grid, Everybody, Offset, Weight, TIERED>;
  Steps steps = {grid, {shared}, rows, weights, paths, control.state};
  State &state = steps.state;
  const u32 first = state.round;
  while (true) {
    const u32 round = state.round, turn = state.buckets & 1;
    const bool over = round > first && (u64)clock64() - began > paths.clocks;
    if (!meet_all(shared, control, state, over)) return;
    if (fresh(heard.said[TOLD]) == 0) {
      const u64 least = fresh(heard.said[LEAST]);
      state.done = least == FAR;
      if (state.done) break;
      steps.widen_or_narrow(fresh(heard.said[EDGES]), fresh(heard.said[TAKEN]), fresh(heard.said[RETAKEN]));
      state.piled = (u32)min(fresh(heard.said[PILED]), (u64)NONE);
      steps.begin_bucket(least, fresh(control.piled[turn]));
      continue;
    }
    if (fresh(heard.said[OVER])) break;
    if (grid.leads()) {
      control.queued[(round + 2) % 3] = 0, shared.heard->told[(round + 1) & 1] = 0;
      shared.heard->news += fresh(heard.told[round & 1]);
    }
    take_news(rows, paths, shared, round);
    grid.meet();
    steps.relax(fresh(control.queued[round % 3]));
    state.round++;
  }
  if (grid.leads()) control.state = state;
}
