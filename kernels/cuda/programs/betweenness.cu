// Betweenness: pipeline/algorithms/betweenness.py says what is counted, kernels/reference.py has the
// definition (Brandes: A Faster Algorithm for Betweenness Centrality, 2001). From one source the paths
// are counted level by level, and dependencies added up on the way back, each vertex by a sum over its
// row. A level that most edges leave is not followed, where edges lead both ways: vertices that are not
// reached yet look for it (Beamer, Asanovic, Patterson: Direction-Optimizing Breadth-First Search, SC
// 2012). A gang (queue.cuh) does one source: the whole grid, or each block another one.
//
// A source to which paths are too many for a 64-bit float is left out, and done again by a kernel that is
// WIDE: there a number of paths is paths * 2^exponent, and paths at least 1 and less than 2.
#include "programs/queue.cuh"
#include "programs/rows.cuh"
#include "programs/sums.cuh"

#define TOGETHER 4  // entries of a lane whose loads are under way at once

// What a gang has. distance: NONE where no path has come yet. paths: how many shortest ones lead to a
// vertex, 0 there; exponents: of these, where they are wide. share: what a vertex tells those before it.
// items: of the levels, one after the other; ends: of each, where it ends. part_sums: by item. queued: items
// of a level, the next, and the one whose time is over; leaving: edges out of their vertices. score: receives
// dependencies. looked: edges followed, or looked at, and levels, in all.
struct Tree {
  u32 *distance;
  double *paths;
  int *exponents;
  double *share;
  Item *items;
  u32 *ends;
  double *part_sums;
  u32 *queued;
  u64 *leaving;
  double *score;
  u64 *looked;
};

// Of each source of a launch: whether it is left out, as more than `most_paths` lead to a vertex. 0 before.
struct LeftOut {
  u32 *marks;
  double most_paths;
};

template <class Gang, class Offset, bool TIERED, bool WIDE>
struct Brandes {
  const Gang gang;
  const Rows<Offset> &rows;
  const Tree &tree;
  const LeftOut left_out;  // of the gang's source
  const u32 cut;    // whether any row has several parts
  const u32 twice;  // whether every edge stands in the rows of both its ends

  // A vertex that no edge leaves is an item, too: it has a share.
  __device__ u32 items(u32 vertex) const { return items_found(rows.offsets, vertex); }

  __device__ void run(u32 source) {
    const u32 begun = items(source);
    if (gang.leads()) {
      tree.distance[source] = 0, tree.paths[source] = 1;
      for (u32 part = 0; part < begun; part++) tree.items[part] = {source, part};
      tree.ends[0] = begun;
      tree.queued[1] = 0, tree.leaving[1] = 0;
    }
    gang.meet();
    u32 level = 0, last = begun;
    u64 leaving = entries_of(rows, source).count(), left = (u64)rows.offsets[rows.rows] - leaving;
    for (u32 first = 0; first < last; level++) {
      if (gang.leads()) tree.queued[(level + 2) % 3] = 0, tree.leaving[(level + 2) % 3] = 0;
      if (twice && left + rows.rows < leaving)
        look_for(last, level);
      else
        count(first, last, level);
      gang.meet();
      leaving = __ldcg(tree.leaving + (level + 1) % 3), left -= leaving;
      first = last;
      last += __ldcg(tree.queued + (level + 1) % 3);
      if (gang.leads()) tree.ends[level + 1] = last;
    }
    if (gang.leads()) tree.looked[1] += level;
    if (!WIDE) {
      each_vertex(0, last, [&](u32 vertex) {
        if (__ldcg(tree.paths + vertex) > left_out.most_paths) *left_out.marks = 1;
      });
    }
    gang.meet();
    if (WIDE) count_wide(level, last);
    if (WIDE || !__ldcg(left_out.marks))
      while (--level) depend(__ldcg(tree.ends + level - 1), __ldcg(tree.ends + level), level);
    each_vertex(0, last, [&](u32 vertex) { tree.distance[vertex] = NONE, tree.paths[vertex] = 0; });
    gang.meet();
  }

  // Call `visit(vertex)` with the vertices of some items, each once.
  template <class Visit>
  __device__ void each_vertex(u32 first, u32 last, Visit visit) {
    for (u32 i = first + gang.thread(); i < last; i += gang.threads()) {
      const Item item = tree.items[i];
      if (item.part == 0) visit(item.vertex);
    }
  }

  // Count the paths again, over the levels that are known, whose items end at `last`. A vertex has the
  // greatest exponent of those before it, then the sum of their paths in its own power of two.
  __device__ void count_wide(u32 levels, u32 last) {
    each_vertex(0, last, [&](u32 vertex) { tree.paths[vertex] = 0, tree.exponents[vertex] = 0; });
    gang.meet();
    if (gang.leads()) tree.paths[tree.items[0].vertex] = 1;
    gang.meet();
    for (u32 level = 0, first = 0; level + 1 < levels; level++) {
      const u32 end = __ldcg(tree.ends + level), next = __ldcg(tree.ends + level + 1);
      tell(first, end, level, [&](u32 vertex, u32 seen) {
        atomicMax(tree.exponents + seen, __ldcg(tree.exponents + vertex));
      });
      gang.meet();
      tell(first, end, level, [&](u32 vertex, u32 seen) {
        const int shift = __ldcg(tree.exponents + vertex) - __ldcg(tree.exponents + seen);
        atomicAdd(tree.paths + seen, scalbn(__ldcg(tree.paths + vertex), shift));
      });
      gang.meet();
      each_vertex(end, next, [&](u32 vertex) {
        int exponent;
        tree.paths[vertex] = 2 * frexp(__ldcg(tree.paths + vertex), &exponent);
        tree.exponents[vertex] += exponent - 1;
      });
      gang.meet();
      first = end;
    }
  }

  // Call `visit(vertex, target)` with each edge from the items of a level to the next one.
  template <class Visit>
  __device__ void tell(u32 first, u32 last, u32 level, Visit visit) {
    u32 edges = 0;
    auto look = [&](u64 edge) -> uint2 {
      const u32 vertex = entry<TIERED>(rows.targets, edge);
      return {vertex, tree.distance[vertex]};
    };
    follow(rows.offsets, tree.items + first, last - first, gang.crew(), [](u32 vertex) { return vertex; }, look,
           [&](u32 vertex, uint2 seen, bool any) {
             if (!any) return;
             edges++;
             if (seen.y == level + 1) visit(vertex, seen.x);
           });
    note(edges, 0, level);
  }

  // The items of a level queue those of the next one, and count the paths to them.
  __device__ void count(u32 first, u32 last, u32 level) {
    u32 edges = 0, leaving = 0;
    __shared__ Kept::Slots slots;
    Kept found(slots);
    auto put = [&](u32 vertex, bool any) { queue(vertex, any, last, level); };
    const bool few = Gang::ALONE || last - first < 32 * gang.crew().warps;
    auto paths_to = [&](u32 vertex) { return __ldcg(tree.paths + vertex); };
    // (A distance that is not fresh is NONE, and the atomic operation knows better.)
    auto look = [&](u64 edge) -> uint2 {
      const u32 vertex = entry<TIERED>(rows.targets, edge);
      return {vertex, tree.distance[vertex]};
    };
    follow(rows.offsets, tree.items + first, last - first, gang.crew(), paths_to, look,
           [&](double own, uint2 seen, bool any) {
             u32 vertex = NONE;
             bool is_new = false;
             if (any) {
               edges++;
               vertex = seen.x;
               u32 distance = seen.y;
               if (distance == NONE) {
                 distance = atomicCAS(tree.distance + vertex, NONE, level + 1);
                 if (distance == NONE) {
                   is_new = true, distance = level + 1;
                   leaving += (u32)entries_of(rows, vertex).count();
                 }
               }
               if (distance == level + 1) atomicAdd(tree.paths + vertex, own);
             }
             few ? put(vertex, is_new) : found.keep(vertex, is_new, put);
           });
    found.put_all(put);
    note(edges, leaving, level);
  }

  // Behind the levels so far, which end at `last`. By whole warps.
  __device__ void queue(u32 vertex, bool any, u32 last, u32 level) {
    push_items(tree.items + last, &tree.queued[(level + 1) % 3], vertex, any ? items(vertex) : 0);
  }

  // The same by the vertices that no path has come to.
  __device__ void look_for(u32 last, u32 level) {
    u32 edges = 0, leaving = 0;
    __shared__ Kept::Slots slots;
    Kept found(slots);
    auto put = [&](u32 vertex, bool any) { queue(vertex, any, last, level); };
    visit_rows(rows, gang.crew(), [&](u32 row, Entries whole, Entries some, u32 lane, u32 width) {
      const bool part = some.count() < whole.count();
      u32 own = row == NONE ? 0 : __ldcg(tree.distance + row);
      // (Of parts, others may have found the row already.)
      const bool wanted = row != NONE && (own == NONE || (part && own == level + 1));
      double sum = 0;
      if (wanted) {
        sum = sum_of_level(level, some, lane, width, [&](u32 of) { return __ldcg(tree.paths + of); });
        if (lane == 0) edges += (u32)some.count();
      }
      sum = lanes_sum(sum, width);
      bool is_new = false;
      if (wanted && lane == 0 && sum > 0) {
        if (part) {
          own = atomicCAS(tree.distance + row, NONE, level + 1);
          atomicAdd(tree.paths + row, sum);
        } else {
          tree.distance[row] = level + 1, tree.paths[row] = sum;
        }
        if (own == NONE) is_new = true, leaving += (u32)whole.count();
      }
      Gang::ALONE ? put(row, is_new) : found.keep(row, is_new, put);
    });
    found.put_all(put);
    note(edges, leaving, level);
  }

  // `value_of` those of a lane's entries that are of a level, added up.
  template <class ValueOf>
  __device__ double sum_of_level(u32 level, Entries entries, u32 lane, u32 width, ValueOf value_of) {
    double sum = 0;
    for (u64 e = entries.begin + lane; e < entries.end; e += (u64)TOGETHER * width) {
      u32 target[TOGETHER];
      bool wanted[TOGETHER];
#pragma unroll
      for (u32 k = 0; k < TOGETHER; k++)
        target[k] = e + k * width < entries.end ? entry<TIERED>(rows.targets, e + k * width) : NONE;
#pragma unroll
      for (u32 k = 0; k < TOGETHER; k++)
        wanted[k] = target[k] != NONE && tree.distance[target[k]] == level;
#pragma unroll
      for (u32 k = 0; k < TOGETHER; k++)
        if (wanted[k]) sum += value_of(target[k]);
    }
    return sum;
  }

  // The vertices of a level depend on those of the next one.
  __device__ void depend(u32 first, u32 last, u32 level) {
    u32 edges = 0;
    auto add_up = [&](u32 at, u32 vertex, Entries some, u32 lane, u32 width) {
      const int own = WIDE && at != NONE ? __ldcg(tree.exponents + vertex) : 0;
      double sum = sum_of_level(level + 1, some, lane, width, [&](u32 of) {
        const double share = __ldcg(tree.share + of);
        return WIDE ? scalbn(share, own - __ldcg(tree.exponents + of)) : share;
      });
      sum = lanes_sum(sum, width);
      if (lane || at == NONE) return;
      edges += (u32)some.count();
      if (cut && items(vertex) > 1)
        tree.part_sums[first + at] = sum;
      else
        settle(vertex, sum);
    };
    visit_items(rows, tree.items + first, last - first, gang.crew(), add_up);
    note(edges, 0, level);
    gang.meet();
    if (!cut) return;
    join(first, last);
    gang.meet();
  }

  // Of rows that have several parts.
  __device__ void join(u32 first, u32 last) {
    for (u32 base = first; base < last; base += gang.threads()) {
      const u32 at = base + gang.thread();
      const Item item = at < last ? tree.items[at] : Item{0, 1};
      const u32 parts = item.part == 0 ? items(item.vertex) : 1;
      for (u32 left = __ballot_sync(ALL, parts > 1); left; left &= left - 1) {
        const u32 lane = __ffs(left) - 1;
        const u32 of = __shfl_sync(ALL, at, lane), end = of + __shfl_sync(ALL, parts, lane);
        double sum = 0;
        for (u32 part = of + lane_id(); part < end; part += 32) sum += __ldcg(tree.part_sums + part);
        sum = lanes_sum(sum);
        if (lane_id() == lane) settle(item.vertex, sum);
      }
    }
  }

  __device__ void settle(u32 vertex, double came) {
    const double paths = __ldcg(tree.paths + vertex), dependency = paths * came;
    tree.score[vertex] += dependency;
    tree.share[vertex] = (1 + dependency) / paths;
  }

  // Called by whole blocks. leaving: edges out of the vertices that a level has found.
  __device__ void note(u32 edges, u32 leaving, u32 level) {
    u64 *const to[3] = {tree.looked, tree.leaving + (level + 1) % 3, tree.looked};
    add_sums({edges, leaving, 0}, to);
  }
};

// trees: as many as gangs. cut, twice: as of Brandes. arrived: as of grid_barrier.
template <class Offset, bool TIERED, bool WIDE, int THREADS, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS)
    betweenness_together(const __grid_constant__ Rows<Offset> rows, const Tree *trees, const __grid_constant__ LeftOut left_out,
                         const u32 *sources, u32 cut, u32 twice, u64 *arrived) {
  const Tree tree = trees[0];
  Brandes<Grid, Offset, TIERED, WIDE>{{arrived}, rows, tree, left_out, cut, twice}.run(sources[0]);
}

// A block does one of `count` sources, no more than there are blocks.
template <class Offset, bool TIERED, bool WIDE, int THREADS, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS)
    betweenness_apart(const __grid_constant__ Rows<Offset> rows, const Tree *trees, const __grid_constant__ LeftOut left_out,
                      const u32 *sources, u32 cut, u32 twice, u32 count) {
  if (blockIdx.x >= count) return;
  const Tree tree = trees[blockIdx.x];
  const LeftOut of_block = {left_out.marks + blockIdx.x, left_out.most_paths};
  Brandes<Alone, Offset, TIERED, WIDE>{{}, rows, tree, of_block, cut, twice}.run(sources[blockIdx.x]);
}
