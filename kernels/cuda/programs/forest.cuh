// Trees of vertices that any thread joins: each vertex has a parent, which is less, and roots are their own
// (kernels/programs/forest.py).
#include "base/work.cuh"

// Read through the first-level cache, since all look at the same few roots. Where others have changed it since,
// what is read is an older ancestor, of the same tree. After a barrier of all blocks it is what was written before.
__device__ inline u32 parent_of(const u32 *forest, u32 vertex) { return __ldca(forest + vertex); }

// Pairs of vertices that were joined: two numbers each, as many as there is room for; count: of all.
struct Pairs {
  u32 *pairs;
  u32 *count;
  u32 room;

  __device__ void add(u32 one, u32 other) const {
    if (!pairs) return;
    const u32 at = atomicAdd(count, 1u);
    if (at >= room) return;
    pairs[2 * (u64)at] = one;
    pairs[2 * (u64)at + 1] = other;
  }
};

// Join the trees of two vertices. A root is claimed by compare-and-swap, and goes under a lesser one.
__device__ inline void join(u32 *forest, u32 u, u32 v, const Pairs &joined) {
  u32 one = parent_of(forest, u), other = parent_of(forest, v);
  while (one != other) {
    const u32 high = max(one, other), low = min(one, other);
    u32 above = parent_of(forest, high);
    if (above == low) return;
    if (above == high && (above = atomicCAS(forest + high, high, low)) == high) return joined.add(high, low);
    one = parent_of(forest, above);
    if (one != above) forest[high] = one;  // half the way next time
    other = parent_of(forest, low);
  }
}

// Make each vertex a child of its root.
__device__ inline void flatten(u32 *forest, u32 vertices) {
  FOR_ITEMS(v, vertices) {
    u32 root = parent_of(forest, v);
    for (u32 above; (above = parent_of(forest, root)) != root;) root = above;
    forest[v] = root;
  }
}
