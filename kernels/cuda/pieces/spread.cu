// The operation `spread` on a device: words go from vertices along their edges, and are combined at the other ends.
// Few vertices push theirs; otherwise each vertex pulls, from all of its neighbours.
#include "pieces/monoids.cuh"
#include "programs/queue.cuh"

#define TOGETHER 4  // entries of a lane whose words are under way at once

// What has been counted. edges: of the vertices that push. items: of these (queue.cuh). changed: vertices.
struct Counts {
  u64 edges;
  u32 items;
  u32 changed;
};

// Make items of the vertices in `places`, and count their edges. Launched for whole warps.
template <class Offset>
__global__ void queue_places(const Offset *offsets, const u32 *places, u32 count, Item *queue, Counts *counts) {
  u64 edges = 0;
  FOR_STRIPS(strip, (count + 31) / 32) {
    const u64 at = strip * 32 + lane_id();
    const u32 vertex = at < count ? places[at] : NONE;
    if (vertex != NONE) edges += offsets[vertex + 1] - offsets[vertex];
    push_items(queue, &counts->items, vertex, vertex == NONE ? 0 : items_of(offsets, vertex));
  }
  const u64 all = __shfl_sync(ALL, warp_scan(edges), 31);
  if (lane_id() == 0 && all) atomicAdd(&counts->edges, all);
}

// Push the words of the queue's vertices, unless these have so many edges that a pull pays. Vertices whose words change
// are listed in `changed`, each once: `marks` has a bit for each.
template <class Offset, bool TIERED, class Monoid>
__global__ void push_words(const __grid_constant__ Rows<Offset> rows, const Monoid monoid, const Item *queue,
                           const typename Monoid::Word *x, typename Monoid::Word *y, u32 *marks, u32 *changed,
                           Counts *counts, u64 most) {
  if (counts->edges > most) return;
  auto begin = [&](u32 vertex) { return x[vertex]; };
  auto look = [&](u64 edge) { return entry_once<TIERED>(rows.targets, edge); };
  auto visit = [&](typename Monoid::Word word, u32 target, bool any) {
    const u32 bit = 1u << target % 32;
    const bool is_new = any && monoid.merge(y + target, word) && !has_bit(marks, target) &&
                        !(atomicOr(marks + target / 32, bit) & bit);
    push_vertex(changed, &counts->changed, target, is_new);
  };
  follow(rows.offsets, queue, counts->items, whole_grid(), begin, look, visit);
}

// Combine, into y[v] of each vertex v, the words of all neighbours in its row.
template <class Offset, bool TIERED, class Monoid, int THREADS, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS)
    pull_words(const __grid_constant__ Rows<Offset> rows, const Monoid monoid, const typename Monoid::Word *x,
               typename Monoid::Word *y) {
  visit_rows(rows, whole_grid(), [&](u32 row, Entries whole, Entries some, u32 lane, u32 width) {
    typename Monoid::Word came = monoid.unit;
    if (row != NONE && !monoid.finished(y[row])) {
      for (u64 e = some.begin + lane; e < some.end && !monoid.finished(came); e += (u64)TOGETHER * width) {
        u32 target[TOGETHER];
#pragma unroll
        for (u32 k = 0; k < TOGETHER; k++)
          target[k] = e + k * width < some.end ? entry_once<TIERED>(rows.targets, e + k * width) : NONE;
#pragma unroll
        for (u32 k = 0; k < TOGETHER; k++)
          if (target[k] != NONE) came = monoid.combine(came, x[target[k]]);
      }
    }
    for (u32 step = width / 2; step; step /= 2) came = monoid.combine(came, __shfl_xor_sync(ALL, came, step));
    if (row == NONE || lane || came == monoid.unit) return;
    if (some.count() == whole.count())
      y[row] = monoid.combine(y[row], came);
    else
      monoid.merge(y + row, came);
  });
}
