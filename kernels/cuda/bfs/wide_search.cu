// Breadth-first search by the whole device, in one cooperative launch (Gunrock's fused kernel:
// no return to the host between levels).
//
// A level pushes from a queue or pulls over a bitmap, whichever promises less work, and ends
// at a barrier of the grid; all threads read the same counters then and take the same turn. As long
// as levels are so small that the barrier is what they would cost, one block goes on alone. The
// launch ends when the search does, or when another kernel should go on: `Control` holds
// where it stands.
#include "bfs/direction.cuh"
#include "bfs/passes.cuh"
#include "bfs/push.cuh"

#define FEW_EDGES 65536      // that a small push follows, at most
#define FEW_UNVISITED 65536  // of which a pull queues what it finds
#define ALONE_EDGES 1024     // of a level that one block does: a barrier would take as long

// Where a search stands: every block keeps the same, in shared memory.
struct Course {
  Outlook now;
  u64 clock;
  u32 level;
  u32 bitmap, queue;
  u32 small_levels;
  u32 status;
  u32 step;
  float expected;  // entries that a pull looks at
  float more;      // times as many did the last one look at
  bool enqueueing;
  bool alone;
  bool partial;

  // At the source, as `begin` has it.
  template <class Offset>
  __device__ void begin(const Graph<Offset> &graph, u32 source) {
    const u64 forward = graph.offsets[source + 1] - graph.offsets[source];
    now = {forward, graph.edges - forward, ~0ull, 1, 1, 1, true};
    more = 1;
    level = bitmap = queue = small_levels = 0;
    partial = false;
    clock = clock64();
  }

  __device__ void load(const Control &control) {
    now.load(control);
    level = __ldcg(&control.level);
    bitmap = __ldcg(&control.turn) & 1;
    queue = __ldcg(&control.turn) >> 1;
    partial = __ldcg(&control.partial);
    small_levels = __ldcg(&control.small_levels);
    more = __ldcg(&control.more);
    clock = clock64();
  }

  __device__ void save(Control &control) const {
    now.save(control);
    control.status = status;
    control.level = level;
    control.turn = bitmap | queue << 1;
    control.partial = 0;
    control.small_levels = small_levels;
    control.more = more;
  }

  // What to do next: a step, or to end the launch.
  template <class Offset, class Distance>
  __device__ void decide(const Graph<Offset> &graph, const Search<Offset, Distance> &search) {
    const u32 last_level = sizeof(Distance) == 1 ? 254 : 0x7ffffffe;
    status = RUNNING;
    if (now.found == 0 || (now.queued && now.frontier == 0) || level >= search.max_level)
      status = DONE;
    else if (level == last_level)
      status = WIDEN;
    else if (level - search.first_level == search.level_capacity)
      status = MORE;
    else if (search.narrow_levels && small_levels >= search.narrow_levels)
      status = NARROW;
    const Costs costs = {search.push_cost, search.wait, search.resident ? ~0ull : FEW_EDGES};
    alone = now.queued && !partial && now.forward <= ALONE_EDGES;
    step = PUSH;
    if (!alone && !partial)
      step = choose(graph, now, more, search.enqueue_edges, costs);
    if (step == PULL) expected = pull_work(graph, now);
    enqueueing = step == PUSH && now.forward <= search.enqueue_edges;
    if (enqueueing && now.forward > FEW_EDGES && !search.resident)
      enqueueing = choose(graph, after_push(now, graph.vertices, graph.edges),
                          more, search.enqueue_edges, costs) == PUSH;
    if (step == PULL)
      enqueueing = graph.vertices - now.visited <= min(search.enqueue_edges, FEW_UNVISITED);
    partial = false;
  }

  // A level is over.
  template <class Offset, class Distance>
  __device__ void advance(const Counters &counted, u32 vertices,
                          const Search<Offset, Distance> &search) {
    const u32 narrow_frontier = search.narrow_frontier;
    level++;
    now.found = (u32)counted.found;
    now.visited += now.found;
    if (step == PULL) {
      now.pulled(counted.wasted);
      if (counted.examined > (u64)search.wait) more = max(1.0f, (float)counted.examined / expected);
    } else if (!enqueueing) {
      now.pushed(vertices);
    }
    if (enqueueing) now.enqueued(counted.queued);
    bool small = enqueueing && now.found <= narrow_frontier && now.forward <= 4 * narrow_frontier;
    small_levels = small ? small_levels + 1 : 0;
  }

  template <class Offset, class Distance>
  __device__ void record(const Search<Offset, Distance> &search, const Counters &counted) {
    const u64 ended = clock64();
    search.levels[level - 1 - search.first_level] = {counted.examined, ended - clock, now.found,
                                                     step == PULL};
    clock = ended;
  }
};

__device__ inline Counters read(const Counters &counters) {
  return {__ldcg(&counters.queued), __ldcg(&counters.found), __ldcg(&counters.examined),
          __ldcg(&counters.wasted), 0, 0};
}

// Small levels, one after the other, by one block.
template <class Offset, class Distance, bool TIERED>
__device__ __noinline__ void go_alone(const Graph<Offset> &graph,
                                      const Search<Offset, Distance> &search, Course &course,
                                      Scratch &own) {
  __shared__ Counters counters[2];  // of levels in turn
  const bool leader = threadIdx.x == 0;
  if (leader) counters[course.level & 1] = {};
  __syncthreads();
  while (course.alone && course.status == RUNNING) {
    Counters &counted = counters[course.level & 1];
    if (leader) counters[course.level + 1 & 1] = {};
    const Enqueue<Offset> into = {graph.offsets, search.queue[course.queue ^ 1], &counted.queued,
                                  own.buffer};
    const Queue<Offset> &queue = search.queue[course.queue];
    u32 *const visited = search.visited[course.bitmap];
    const u32 level = course.level + 1, frontier = course.now.frontier;
    const u64 edges = course.now.forward;
    const Tally tally =
        search.resident
            ? push<Offset, Distance, TIERED, HOT>(graph, search, queue, frontier, edges, visited,
                                                  level, into, {}, own_block())
            : push<Offset, Distance, TIERED, SMALL>(graph, search, queue, frontier, edges, visited,
                                                    level, into, {}, own_block());
    tally.add_to(counted);
    __syncthreads();
    if (leader) {
      course.queue ^= 1;
      course.advance(counted, graph.vertices, search);
      course.record(search, counted);
      course.decide(graph, search);
    }
    __syncthreads();
  }
  if (leader) course.save(*search.control);
}

template <class Offset, class Distance, bool TIERED, int THREADS, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS)
    wide_search(const __grid_constant__ Graph<Offset> graph,
                const __grid_constant__ Search<Offset, Distance> search) {
  extern __shared__ Scratch scratch[];  // for each warp
  __shared__ Course course;
  Scratch &own = scratch[threadIdx.x / 32];
  Control *control = search.control;
  const bool block_leader = threadIdx.x == 0, leader = blockIdx.x == 0 && block_leader;

  if (!search.resume) begin(graph, search);
  if (leader && !(search.resume && control->partial)) control->counters[0] = Counters{};
  grid_barrier(&control->arrived);
  // (From `control` only if all have read it before a block that goes alone writes there.)
  if (block_leader) {
    if (search.resume) course.load(*control);
    else course.begin(graph, search.source);
  }
  if (search.resume) grid_barrier(&control->arrived);

  for (u32 phase = 0;; phase++) {
    if (block_leader) course.decide(graph, search);
    __syncthreads();
    if (course.status != RUNNING) break;
    Counters *counters = &control->counters[phase % 3];
    if (leader) control->counters[(phase + 1) % 3] = Counters{};
    if (course.alone) {
      if (blockIdx.x == 0) go_alone<Offset, Distance, TIERED>(graph, search, course, own);
      grid_barrier(&control->arrived);
      if (block_leader && blockIdx.x) course.load(*control);
      continue;
    }
    u32 *visited = search.visited[course.bitmap];
    const Queue<Offset> &queue = search.queue[course.queue];
    if (course.step == GATHER) {
      gather(graph, search, visited, course.level,
             Enqueue<Offset>{graph.offsets, queue, &counters->queued, own.buffer});
      grid_barrier(&control->arrived);
      if (block_leader) course.now.enqueued(__ldcg(&counters->queued));
      continue;
    }
    u32 *after = visited;
    const Queue<Offset> &next = search.queue[course.queue ^ 1];
    const Into<Offset> to = {graph.offsets, next, course.enqueueing ? &counters->queued : nullptr};
    Tally tally;
    if (course.step == PUSH) {
      Enqueue<Offset> into = {graph.offsets, next, &counters->queued, own.buffer};
      const u32 level = course.level + 1, frontier = course.now.frontier;
      const u64 edges = course.now.forward;
      if (search.resident) {
        tally = push<Offset, Distance, TIERED, HOT>(graph, search, queue, frontier, edges, visited,
                                                    level, into);
      } else if (edges <= FEW_EDGES) {
        tally = push<Offset, Distance, TIERED, SMALL>(graph, search, queue, frontier, edges,
                                                      visited, level, into);
      } else {
        u32 *kept = search.visited[course.bitmap ^ 1];
        keep(graph, visited, kept);
        grid_barrier(&control->arrived);
        if (course.enqueueing)
          tally = push<Offset, Distance, TIERED, LARGE>(graph, search, queue, frontier, edges,
                                                        visited, level, into);
        else
          tally = push<Offset, Distance, TIERED, LAZY>(graph, search, queue, frontier, edges,
                                                       visited, level, into);
        grid_barrier(&control->arrived);
        tally.found = note(graph, search, kept, visited, level);
      }
    } else {
      after = search.visited[course.bitmap ^ 1];
      const Everyone sought = {strips_of(graph.vertices)};
      tally = pull<Offset, Distance, TIERED>(
          graph, search, visited, visited, after, sought, own, *counters, course.level + 1,
          is_sparse(sought, graph.vertices - course.now.visited), Unchanged{}, to);
    }
    tally.add_to(*counters);
    grid_barrier(&control->arrived);
    if (__ldcg(&counters->rest)) {
      tally = pull_rest<Offset, Distance, TIERED>(graph, search, visited, after, *counters,
                                                  course.level + 1, Unchanged{}, to);
      tally.add_to(*counters);
      grid_barrier(&control->arrived);
    }
    if (block_leader) {
      if (course.step == PULL) course.bitmap ^= 1;
      course.queue ^= 1;
      const Counters counted = read(*counters);
      course.advance(counted, graph.vertices, search);
      if (leader) course.record(search, counted);
    }
  }

  if (course.status == DONE) settle(search, search.visited[course.bitmap], graph.vertices);
  if (leader) course.save(*control);
}
