// Which way a level goes: choice only; the work is in push.cuh, pull.cuh and passes.cuh.
#include "bfs/search.cuh"

enum Step : u32 { PUSH, PULL, GATHER };

// What the next level has before it.
struct Outlook {
  u64 forward;          // edges that leave the frontier; about as many, if it is not queued
  u64 unvisited_edges;  // at most, that enter unvisited vertices; and the frontier, if not queued
  u64 pull_bound;       // entries that the last pull looked at in vain: what another might
  u32 frontier;         // vertices in the queue
  u32 found;            // vertices at the level
  u32 visited;
  bool queued;

  // A level is over, and its vertices have not been queued. wasted: what a pull looked at in vain; those
  // still unvisited have no more edges, and so the others had the rest.
  __device__ void pulled(u64 wasted) {
    queued = false;
    unvisited_edges = min(unvisited_edges, pull_bound);
    pull_bound = wasted;
    forward = unvisited_edges - min(unvisited_edges, wasted);
  }

  // The same after a push: they have as many as others, on average.
  __device__ void pushed(u32 vertices) {
    queued = false;
    const float each = (float)unvisited_edges / max((float)(vertices - visited + found), 1.0f);
    forward = min(unvisited_edges, (u64)((float)found * each));
  }

  // They have been.
  __device__ void enqueued(u64 counted) {
    queued = true;
    frontier = QUEUED_VERTICES(counted);
    forward = QUEUED_EDGES(counted);
    unvisited_edges -= min(unvisited_edges, forward);
  }

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

// Entries that a pull is expected to look at, by the graph's degrees (Pan, Pearce and Owens, section
// IV-B, take them all to be long: 1 / share).
template <class Offset>
__device__ inline float pull_work(const Graph<Offset> &graph, const Outlook &now) {
  const float all = (float)(now.unvisited_edges + (now.queued ? now.forward : 0));
  const float share = (float)now.forward / max(all, 1.0f);
  return (float)(graph.vertices - now.visited) * looks_at(graph, share);
}

// What the choice is weighed by. push: of following an edge, where looking at an entry in a pull
// costs 1. wait: entries that could be looked at while a pull's chain of loads is waited for. small:
// edges of a push that needs no passes over the bitmaps, at most.
struct Costs {
  float push, wait;
  u64 small;
};

// Push or pull by the work of each. Where neighbours of the unvisited are unvisited, too, as in cliques,
// a pull looks at more than degrees let expect, and the next one is expected to do so again; but
// never at more than a pull before it has looked at in vain.
// A frontier that is not queued has to be gathered before a push.
// more: times as many entries as expected did the last pull look at. most_queued: vertices that a queue
// takes.
template <class Offset>
__device__ inline Step choose(const Graph<Offset> &graph, const Outlook &now, float more,
                              u32 most_queued, const Costs &costs) {
  if (!now.queued && now.found > most_queued) return PULL;
  const float most = (float)min(now.pull_bound, now.unvisited_edges);
  const float pass = (float)(graph.vertices / 32), wait = costs.wait / 2;
  const float pulling = min(more * pull_work(graph, now), most) + pass + 2 * wait;
  float pushing = costs.push * (float)now.forward + wait;
  if (!now.queued) pushing += pass + wait;
  if (now.forward > costs.small) pushing += 2 * (pass + wait);
  if (pushing > pulling) return PULL;
  return now.queued ? PUSH : GATHER;
}
