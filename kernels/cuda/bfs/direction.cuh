// Which way a level goes: choice only; the work is in push.cuh, pull.cuh and passes.cuh.
#include "bfs/search.cuh"

enum Step : u32 { PUSH, PULL, GATHER };

// What the next level has before it.
struct Outlook {
  u64 forward;          // edges that leave the frontier, if it is queued
  u64 unvisited_edges;  // at most, that enter unvisited vertices
  u64 pull_bound;       // entries that the last pull looked at in vain: what another might
  u32 frontier;         // vertices in the queue
  u32 found;            // vertices at the level
  u32 visited;
  bool queued;

  // As it stands in the memory that outlasts a launch.
  template <class Control>
  __device__ void load(const Control &control) {
    forward = __ldcg(&control.forward);
    unvisited_edges = __ldcg(&control.unvisited_edges);
    pull_bound = __ldcg(&control.pull_bound);
    frontier = __ldcg(&control.frontier);
    found = __ldcg(&control.found);
    visited = __ldcg(&control.visited);
    queued = __ldcg(&control.queued) != 0;
  }

  template <class Control>
  __device__ void save(Control &control) const {
    control.forward = forward;
    control.unvisited_edges = unvisited_edges;
    control.pull_bound = pull_bound;
    control.frontier = frontier;
    control.found = found;
    control.visited = visited;
    control.queued = queued;
  }
};

// What a push of many edges would leave, if degrees are as they are on average: it needs no queue
// if a pull follows it anyway.
__device__ inline Outlook after_push(const Outlook &now, u32 vertices, u64 edges) {
  Outlook next = now;
  float unvisited = (float)(vertices - now.visited);
  float found = min(unvisited, (float)now.forward * (float)now.unvisited_edges / (float)edges);
  next.forward = (u64)(found * ((float)now.unvisited_edges / max(unvisited, 1.0f)));
  next.forward = min(next.forward, now.unvisited_edges);
  next.unvisited_edges -= next.forward;
  next.visited += (u32)found;
  return next;
}

// Entries that a pull looks at for each unvisited vertex if `share` of all edges lead to a visited one.
template <class Offset>
__device__ inline float looks_at(const Graph<Offset> &graph, float share) {
  float k = min(-log2f(share), LOOKS - 1.001f);
  u32 below = (u32)k;
  return graph.looks[below] + (k - below) * (graph.looks[below + 1] - graph.looks[below]);
}

// Push or pull by the work of each. A pull looks at what the graph's degrees let expect (Pan, Pearce
// and Owens, section IV-B, take them all to be long: 1 / share), and never at more than a pull
// before it has looked at in vain.
// A frontier of unknown degrees is gathered first if pulling might cost much and it is small.
// most_queued: vertices that a queue takes.
template <class Offset>
__device__ inline Step choose(const Graph<Offset> &graph, const Outlook &now, u32 most_queued,
                              float push_cost) {
  u32 vertices = graph.vertices;
  u64 most = min(now.pull_bound, now.unvisited_edges);
  if (!now.queued) {
    bool cheap = most <= vertices / 4 || now.found > min(vertices / 64, most_queued);
    return cheap ? PULL : GATHER;
  }
  float share = (float)now.forward / (float)(now.forward + now.unvisited_edges);
  float expected = (float)(vertices - now.visited) * looks_at(graph, share);
  expected = min(expected, (float)most) + (float)(vertices / 32);
  return push_cost * (float)now.forward > expected ? PULL : PUSH;
}
