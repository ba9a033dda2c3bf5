// A round of a minimum spanning forest: the least edges that leave trees, and what they join
// (kernels/programs/spanning.py has the definition).
#include "programs/forest.cuh"

// The pair of numbers that an edge is: the lesser one in the high half.
__device__ inline u64 pair_of(u32 one, u32 other) { return (u64)min(one, other) << 32 | max(one, other); }

// words: of each vertex, receives its tree in the high half, and its number in the low half: NONE if none of its edges
// has left its tree in the last round. least: as `words` of take_weights, of that round.
__global__ void set_words(const u64 *least, const u32 *numbers, u32 vertices, const u32 *tree, u64 *words) {
  FOR_ITEMS(v, vertices) words[v] = (u64)tree[numbers[v]] << 32 | (least[v] == NO_KEY ? NONE : numbers[v]);
}

// words: of each vertex its least edge that leaves its tree, or NO_KEY. numbers: of the vertices. tree: by number.
// least_weights: by tree, receives the least weight of its vertices' edges.
__global__ void take_weights(const u64 *words, const u32 *numbers, u32 vertices, const u32 *tree, u32 *least_weights) {
  FOR_ITEMS(v, vertices) {
    const u64 word = words[v];
    if (word == NO_KEY) continue;
    u32 *least = least_weights + tree[numbers[v]];
    const u32 weight = word >> 32;
    if (weight < *least) atomicMin(least, weight);
  }
}

// least_pairs: by tree, receives the least pair of the edges with the least weight.
__global__ void take_pairs(const u64 *words, const u32 *numbers, u32 vertices, const u32 *tree,
                           const u32 *least_weights, u64 *least_pairs) {
  FOR_ITEMS(v, vertices) {
    const u64 word = words[v];
    if (word == NO_KEY) continue;
    const u32 number = numbers[v], t = tree[number];
    if ((u32)(word >> 32) != least_weights[t]) continue;
    const u64 pair = pair_of(number, (u32)word);
    if (pair < least_pairs[t]) atomicMin(least_pairs + t, pair);
  }
}

// Append the least edges to the forest, each once, in any order. found: the number of its edges.
__global__ void append_least(const u32 *tree, u32 vertices, const u32 *least_weights, const u64 *least_pairs,
                             u32 *weights, u64 *pairs, u32 *found) {
  FOR_ITEMS(t, vertices) {
    const u64 pair = least_pairs[t];
    if (pair == NO_KEY) continue;
    const u32 low = tree[pair >> 32], other = low == t ? tree[(u32)pair] : low;
    if (other < t && least_pairs[other] == pair) continue;  // both trees take it
    const u32 at = atomicAdd(found, 1u);
    weights[at] = least_weights[t];
    pairs[at] = pair;
  }
}

// Join the trees at the ends of the edges from `first` on.
__global__ void join_pairs(u32 *tree, const u64 *pairs, u32 first, const u32 *found) {
  FOR_ITEMS(i, *found - first) {
    const u64 pair = pairs[first + i];
    join(tree, pair >> 32, (u32)pair, Pairs{});
  }
}

// Give each vertex the least vertex of its tree, and forget the least edges of this round.
__global__ void flatten_trees(u32 *tree, u32 vertices, u32 *least_weights, u64 *least_pairs) {
  flatten(tree, vertices);
  FOR_ITEMS(t, vertices) {
    least_weights[t] = NONE;
    least_pairs[t] = NO_KEY;
  }
}
