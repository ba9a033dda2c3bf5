// Truss numbers on a device: edges leave in rounds, by rising support (kernels/programs/truss.py). An edge is an entry of
// the rows of earlier neighbours (pieces/intersect.cu); its later end has the lower degree, so the triangles of an edge
// are found along the edges of that end.
#include "programs/queue.cuh"

// States of an edge that is not left, which is 0.
#define CURRENT 1  // it leaves in this round
#define REMOVED 2

// later: of each edge its later end. by_earlier: the edges by their earlier ends; begins: where those of each vertex
// begin. support: of each edge; of one that is removed, as it was then. queues: of edges that leave; lists: of edges that
// are left, with others that were. gpu_pieces/truss.py packs the same structure.
template <class Offset>
struct Truss {
  const Offset *offsets;
  const u32 *targets;
  const u32 *later;
  const Offset *begins;
  const u32 *by_earlier;
  u32 *support;
  u8 *state;
  u32 *queues[2];
  u32 *lists[2];
};

// How far a run is. queued, listed: the lengths of queues and lists. queue, list: those in use.
struct Progress {
  u64 arrived;
  u64 looked;
  u32 queued[2];
  u32 listed[2];
  u32 queue, list;
  u32 left, level, rounds, least, stop;
};

// The edge between two vertices, or NONE.
template <class Offset>
__device__ inline u64 edge_between(const Truss<Offset> &truss, u32 one, u32 other) {
  const u32 row = max(one, other), target = min(one, other);
  u64 low = truss.offsets[row], high = truss.offsets[row + 1];
  const u64 end = high;
  while (low < high) {
    const u64 middle = (low + high) / 2;
    if (__ldg(truss.targets + middle) < target)
      low = middle + 1;
    else
      high = middle;
  }
  return low < end && __ldg(truss.targets + low) == target ? low : NO_KEY;
}

// An edge that is left loses a triangle. It leaves in the next round if its support falls to the level; it does not fall
// below.
template <class Offset>
__device__ inline void lose(const Truss<Offset> &truss, u64 edge, u32 level, u32 *queue, u32 *queued) {
  const u32 before = atomicSub(truss.support + edge, 1u);
  if (before <= level) atomicAdd(truss.support + edge, 1u);
  if (before == level + 1) queue[atomicAdd(queued, 1u)] = (u32)edge;
}

// Take the triangles of an edge that leaves from other edges: those along every `parts`th chunk of the edges of its later
// end, from chunk `part` on. Of a triangle that loses two edges, the lesser one tells the third.
template <class Offset>
__device__ inline u64 take_triangles(const Truss<Offset> &truss, u32 edge, u32 part, u32 parts, u32 level, u32 *queue,
                                     u32 *queued) {
  const u32 vertex = truss.later[edge], other = truss.targets[edge];
  const u64 row = truss.offsets[vertex], length = truss.offsets[vertex + 1] - row;
  const u64 begin = truss.begins[vertex], all = length + (truss.begins[vertex + 1] - begin);
  for (u64 k = part * 32 + lane_id(); k < all; k += parts * 32) {
    const u64 along = k < length ? row + k : truss.by_earlier[begin + (k - length)];
    if (along == edge || truss.state[along] == REMOVED) continue;
    const u64 across = edge_between(truss, k < length ? truss.targets[along] : truss.later[along], other);
    if (across == NO_KEY || truss.state[across] == REMOVED) continue;
    const bool along_leaves = truss.state[along] == CURRENT, across_leaves = truss.state[across] == CURRENT;
    if (!along_leaves && (!across_leaves || edge < across)) lose(truss, along, level, queue, queued);
    if (!across_leaves && (!along_leaves || edge < along)) lose(truss, across, level, queue, queued);
  }
  return part == 0 ? all : 0;
}

// Do rounds until no edge is left, or so many clocks have passed.
template <class Offset, int THREADS, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS)
    remove_edges(const __grid_constant__ Truss<Offset> truss, Progress *progress, u64 clocks) {
  const u64 began = clock64();
  const Crew crew = whole_grid();
  const bool is_first = first_item() == 0;
  u32 q = progress->queue, l = progress->list, left = progress->left, level = progress->level;
  u32 rounds = progress->rounds, count = progress->queued[q];
  u64 looked = 0;
  bool stop = false;
  while (left && !stop) {
    if (!count) {  // the level rises to the least support of the edges that are left
      u32 *const from = truss.lists[l], *const to = truss.lists[l ^ 1];
      const u32 listed = progress->listed[l];
      u32 least = NONE;
      FOR_STRIPS(strip, ((u64)listed + 31) / 32) {
        const u64 at = strip * 32 + lane_id();
        const u32 edge = at < listed ? from[at] : NONE;
        const bool stays = edge != NONE && truss.state[edge] != REMOVED;
        if (stays) least = min(least, truss.support[edge]);
        push_vertex(to, &progress->listed[l ^ 1], edge, stays);
      }
      for (u32 step = 16; step; step /= 2) least = min(least, __shfl_xor_sync(ALL, least, step));
      if (lane_id() == 0 && least != NONE) atomicMin(&progress->least, least);
      grid_barrier(&progress->arrived);
      level = *(volatile u32 *)&progress->least;
      FOR_STRIPS(strip, ((u64)left + 31) / 32) {
        const u64 at = strip * 32 + lane_id();
        const u32 edge = at < left ? to[at] : NONE;
        const bool leaves = edge != NONE && truss.support[edge] == level;
        if (leaves) truss.state[edge] = CURRENT;
        push_vertex(truss.queues[q], &progress->queued[q], edge, leaves);
      }
      if (is_first) progress->listed[l] = 0;
      l ^= 1;
      grid_barrier(&progress->arrived);
      count = *(volatile u32 *)&progress->queued[q];
      if (is_first) progress->least = NONE;  // all have read it, and none sets it before they meet again
    }
    const u32 parts = max(1u, min(64u, crew.warps / count));
    const u64 items = level ? (u64)count * parts : 0;  // edges of support 0 are in no triangle
    for (u64 item = crew.warp; item < items; item += crew.warps) {
      const u32 edge = truss.queues[q][item / parts];
      looked += take_triangles(truss, edge, item % parts, parts, level, truss.queues[q ^ 1], &progress->queued[q ^ 1]);
    }
    grid_barrier(&progress->arrived);
    const u32 next = *(volatile u32 *)&progress->queued[q ^ 1];
    FOR_ITEMS(at, count) truss.state[truss.queues[q][at]] = REMOVED;
    FOR_ITEMS(at, next) truss.state[truss.queues[q ^ 1][at]] = CURRENT;
    left -= count, rounds++, q ^= 1, count = next;
    if (is_first) {
      progress->queued[q ^ 1] = 0;
      progress->stop = (u64)clock64() - began > clocks;
    }
    grid_barrier(&progress->arrived);
    stop = *(volatile u32 *)&progress->stop;
  }
  if (lane_id() == 0 && looked) atomicAdd(&progress->looked, looked);
  if (is_first) {
    progress->queue = q, progress->list = l, progress->left = left;
    progress->level = level, progress->rounds = rounds;
  }
}
