// Which way a level goes: choice only; the work is in push.cuh, pull.cuh and passes.cuh.
#include "search.cuh"

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

// Push or pull by the work of each, as Pan, Pearce and Owens (section IV-B) weigh it: a pull looks
// at |U| / a entries, a being the share of the frontier's edges in all that are not used up (see
// pipeline/direction.py), and never at more than a pull before it has looked at in vain.
// A frontier of unknown degrees is gathered first if pulling might cost much and it is small.
// most_queued: vertices that a queue takes.
__device__ inline Step choose(const Outlook &now, u32 vertices, u32 most_queued,
                              float push_cost) {
  u64 most = min(now.pull_bound, now.unvisited_edges);
  if (!now.queued) {
    bool cheap = most <= vertices / 4 || now.found > min(vertices / 64, most_queued);
    return cheap ? PULL : GATHER;
  }
  float share = (float)now.forward / (float)(now.forward + now.unvisited_edges);
  float expected = min((float)most, (float)(vertices - now.visited) / share);
  return push_cost * (float)now.forward > expected + (float)(vertices / 32) ? PULL : PUSH;
}
