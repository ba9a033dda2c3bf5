// Breadth-first search by the whole device, in one cooperative launch (Gunrock's fused kernel:
// no return to the host between levels).
//
// A level pushes from a queue or pulls over a bitmap, whichever promises less work, and ends
// at a barrier of the grid; all threads read the same counters then and take the same turn. The
// launch ends when the search does, or when another kernel should go on: `Control` holds
// where it stands.
#include "bfs/direction.cuh"
#include "bfs/passes.cuh"
#include "bfs/push.cuh"

#define FEW_EDGES 65536  // that a small push follows, at most

// Where a search stands: every block keeps the same, in shared memory.
struct Course {
  Outlook now;
  u64 clock;
  u32 level;
  u32 bitmap, queue;
  u32 small_levels;
  u32 status;
  u32 step;
  bool enqueueing;
  bool partial;

  __device__ void load(const Control &control) {
    now.load(control);
    level = __ldcg(&control.level);
    bitmap = __ldcg(&control.turn) & 1;
    queue = __ldcg(&control.turn) >> 1;
    partial = __ldcg(&control.partial);
    small_levels = 0;
    clock = clock64();
  }

  __device__ void save(Control &control) const {
    now.save(control);
    control.status = status;
    control.level = level;
    control.turn = bitmap | queue << 1;
    control.partial = 0;
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
    step = partial ? PUSH : choose(graph, now, search.enqueue_edges, search.push_cost);
    enqueueing = step == PUSH && now.forward <= search.enqueue_edges;
    if (enqueueing && now.forward > FEW_EDGES)
      enqueueing = choose(graph, after_push(now, graph.vertices, graph.edges),
                          search.enqueue_edges, search.push_cost) == PUSH;
    partial = false;
  }

  __device__ void gathered(const Counters &counters) {
    u64 queued = __ldcg(&counters.queued);
    now.frontier = QUEUED_VERTICES(queued);
    now.forward = QUEUED_EDGES(queued);
    now.unvisited_edges -= min(now.unvisited_edges, now.forward);
    now.queued = true;
  }

  // A level is over.
  __device__ void advance(const Counters &counters, u32 narrow_frontier) {
    u64 queued = __ldcg(&counters.queued);
    level++;
    now.found = (u32)__ldcg(&counters.found);
    now.visited += now.found;
    now.queued = enqueueing;
    now.frontier = QUEUED_VERTICES(queued);
    now.forward = QUEUED_EDGES(queued);
    now.unvisited_edges -= min(now.unvisited_edges, now.forward);
    if (step == PULL) now.pull_bound = __ldcg(&counters.wasted);
    bool small = enqueueing && now.found <= narrow_frontier && now.forward <= 4 * narrow_frontier;
    small_levels = small ? small_levels + 1 : 0;
  }
};

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
  if (block_leader) course.load(*control);

  for (u32 phase = 0;; phase++) {
    if (block_leader) course.decide(graph, search);
    __syncthreads();
    if (course.status != RUNNING) break;
    Counters *counters = &control->counters[phase % 3];
    if (leader) control->counters[(phase + 1) % 3] = Counters{};
    u32 *visited = search.visited[course.bitmap];
    const Queue<Offset> &queue = search.queue[course.queue];
    if (course.step == GATHER) {
      gather(graph, search, visited, course.level,
             Enqueue<Offset>{graph.offsets, queue, &counters->queued, own.buffer});
      grid_barrier(&control->arrived);
      if (block_leader) course.gathered(*counters);
      continue;
    }
    u32 *after = visited;
    Tally tally;
    if (course.step == PUSH) {
      const Queue<Offset> &next = search.queue[course.queue ^ 1];
      Enqueue<Offset> into = {graph.offsets, next, &counters->queued, own.buffer};
      const u32 level = course.level + 1, frontier = course.now.frontier;
      const u64 edges = course.now.forward;
      if (edges <= FEW_EDGES) {
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
          is_sparse(sought, graph.vertices - course.now.visited));
    }
    tally.add_to(*counters);
    grid_barrier(&control->arrived);
    if (u32 rest = (u32)__ldcg(&counters->rest)) {
      tally = pull_rest<Offset, Distance, TIERED>(graph, search, visited, after, rest,
                                                  course.level + 1);
      tally.add_to(*counters);
      grid_barrier(&control->arrived);
    }
    if (block_leader) {
      if (course.step == PUSH) course.queue ^= 1;
      else course.bitmap ^= 1;
      course.advance(*counters, search.narrow_frontier);
    }
    if (leader) {
      u64 now = clock64();
      search.levels[course.level - 1 - search.first_level] = {
          __ldcg(&counters->examined), now - course.clock, course.now.found, course.step == PULL};
      course.clock = now;
    }
  }

  if (course.status == DONE) settle(search, search.visited[course.bitmap], graph.vertices);
  if (leader) course.save(*control);
}
