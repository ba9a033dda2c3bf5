// Preparation: from edges to compressed sparse rows, by counting, sorting and dropping duplicates.
//
// Degrees are counted, vertices placed by falling degree, and an edge becomes a key: the row that it
// belongs to over its target's position. Sorted keys are the rows of all subgraphs one after the other,
// neighbours hub first. Which row that is follows from Algorithm 1 of Pan, Pearce, Owens (Scalable
// Breadth-First Search on a GPU Cluster), or from a grid of partitions (partition/store/grid.py);
// the definition is kernels/prepare/csr.py, ``place``.
#include "base/work.cuh"

// Each row counts at both its ends; a self-loop marks its vertex in ``looped`` (bytes) and counts
// for nothing. out_degree: null where only degrees are wanted. loops: receives the self-loops.
template <class Count>
__global__ void count_degrees(const u32 *__restrict__ src, const u32 *__restrict__ dst, u64 rows,
                              Count *degree, Count *out_degree, u8 *looped, u64 *loops) {
  u64 own = 0;
  FOR_ITEMS(i, rows) {
    const u32 u = src[i], v = dst[i];
    if (u == v) {
      looped[u] = 1;
      ++own;
      continue;
    }
    atomicAdd(&degree[u], (Count)1);
    atomicAdd(&degree[v], (Count)1);
    if (out_degree) atomicAdd(&out_degree[u], (Count)1);
  }
  if (own) atomicAdd(loops, own);
}

// Keys that sort vertices by falling degree, ties by id; NO_KEY for ids that do not occur.
// found: receives the vertices, and those among them whose degree has more than 32 bits.
template <class Count>
__global__ void order_keys(const Count *__restrict__ degree, const u8 *__restrict__ looped, u64 domain,
                           u64 *__restrict__ keys, u64 *found) {
  u64 vertices = 0, large = 0;
  FOR_ITEMS(v, domain) {
    const u64 d = degree[v];
    const bool occurs = d || looped[v];
    vertices += occurs;
    large += d >> 32 != 0;
    keys[v] = occurs ? (u64)(~(u32)d) << 32 | v : NO_KEY;
  }
  if (vertices) atomicAdd(&found[0], vertices);
  if (large) atomicAdd(&found[1], large);
}

// position: by id, of vertices only. degree, id_of_position: by position.
template <class Count>
__global__ void number_vertices(const u64 *__restrict__ sorted, u64 vertices, u32 *position,
                                u32 *id_of_position, Count *degree) {
  FOR_ITEMS(r, vertices) {
    const u64 key = sorted[r];
    position[(u32)key] = (u32)r;
    id_of_position[r] = (u32)key;
    degree[r] = (Count)(u32)(~(u32)(key >> 32));
  }
}

// Rows by the class of the higher degree of their two ends: the lower position's. ends: of each of
// ``classes`` degrees, falling, the first position after its own.
__global__ void count_classes(const u32 *__restrict__ src, const u32 *__restrict__ dst, u64 rows,
                              const u32 *__restrict__ position, const u64 *__restrict__ ends,
                              u32 classes, u64 *histogram) {
  FOR_ITEMS(i, rows) {
    const u32 u = position[src[i]], v = position[dst[i]];
    if (u == v) continue;
    const u32 least = u < v ? u : v;
    u32 low = 0, high = classes - 1;
    while (low < high) {
      const u32 middle = (low + high) / 2;
      if (ends[middle] > least)
        high = middle;
      else
        low = middle + 1;
    }
    atomicAdd(&histogram[low], 1ull);
  }
}

// What decides an edge's row. position: by id. global_of_position: null where it is the identity.
// delegate_degree: by position. first_row: of each slot (csr.py), NONE where it is not kept. columns: of
// the grid, 0 where there is none.
struct Placing {
  const u32 *position;
  const u32 *global_of_position;
  const u64 *delegate_degree;
  const u32 *first_row;
  u32 partitions, columns, delegates, directed;
};

__device__ inline u32 global_id(const Placing &to, u32 position) {
  return to.global_of_position ? to.global_of_position[position] : position;
}

// Slot of the edge between positions u -> v: its partition times 8, and its subgraph.
__device__ inline u32 slot_of(const Placing &to, u32 u, u32 v) {
  if (to.partitions == 1) return 0;
  if (to.columns) {
    const u32 rows = to.partitions / to.columns;
    const u32 row = global_id(to, v) / to.columns % rows, column = global_id(to, u) % to.columns;
    return (row * to.columns + column) * 8;
  }
  const bool u_delegate = u < to.delegates, v_delegate = v < to.delegates;
  u32 owned;
  if (!u_delegate) {
    owned = global_id(to, u);
  } else if (!v_delegate) {
    owned = global_id(to, v);
  } else if (to.delegate_degree[u] != to.delegate_degree[v]) {
    owned = global_id(to, u < v ? v : u);  // the higher position has the lower degree
  } else {
    const u32 a = global_id(to, u), b = global_id(to, v);
    owned = a < b ? a : b;
  }
  return owned % to.partitions * 8 + 2 * u_delegate + v_delegate;
}

__device__ inline u64 key_of(const Placing &to, u32 slot, u32 u, u32 v) {
  const u32 first = to.first_row[slot];
  if (first == NONE) return NO_KEY;
  const u32 every = to.columns ? to.columns : to.partitions;
  const u32 row = u < to.delegates ? u : global_id(to, u) / every;
  return (u64)(first + row) << 32 | v;
}

// Two keys a row, both ways (directed: the edge, and its entry in the transpose, which in a grid is
// placed as the edge the other way); NO_KEY for self-loops. back: where the second ones go.
__global__ void make_keys(const u32 *__restrict__ src, const u32 *__restrict__ dst, u64 rows, Placing to,
                          u64 *__restrict__ keys, u64 *__restrict__ back) {
  FOR_ITEMS(i, rows) {
    const u32 u = to.position[src[i]], v = to.position[dst[i]];
    const bool loop = u == v;
    const u32 slot = slot_of(to, u, v);
    const bool same_place = to.directed && !to.columns;
    const u32 back_slot = same_place ? slot + 4 : slot_of(to, v, u) + 4 * to.directed;
    keys[i] = loop ? NO_KEY : key_of(to, slot, u, v);
    back[i] = loop ? NO_KEY : key_of(to, back_slot, v, u);
  }
}

// Whether sorted keys[i] is the first of its kind; ``before``: its predecessor, NO_KEY without one.
__device__ inline bool is_fresh(u64 key, u64 before) { return key != NO_KEY && key != before; }

// Distinct keys of each strip.
__global__ void count_distinct(const u64 *__restrict__ keys, u64 count, u64 strips, u64 *distinct) {
  const u32 lane = threadIdx.x & 31;
  FOR_STRIPS(strip, strips) {
    u32 own = 0;
#pragma unroll 8
    for (u32 step = 0; step < LONG_STRIP; step += 32) {
      const u64 i = strip * LONG_STRIP + step + lane;
      const u64 key = i < count ? keys[i] : NO_KEY;
      const u64 before = i && i < count ? keys[i - 1] : NO_KEY;
      own += __popc(__ballot_sync(0xffffffffu, is_fresh(key, before)));
    }
    if (lane == 0) distinct[strip] = own;
  }
}

// Write the targets of distinct keys, one after the other, and count those of each row.
// ends: distinct keys up to and with each strip. row_counts: zeros; a row adds where it ends and
// takes away where it begins, modulo 2^32: rows of no keys cost nothing, however many.
__global__ void write_rows(const u64 *__restrict__ keys, u64 count, u64 strips,
                           const u64 *__restrict__ ends, u32 *row_counts,
                           u32 *__restrict__ targets) {
  const u32 lane = threadIdx.x & 31;
  FOR_STRIPS(strip, strips) {
    u64 base = strip ? ends[strip - 1] : 0;
#pragma unroll 4
    for (u32 step = 0; step < LONG_STRIP; step += 32) {
      const u64 i = strip * LONG_STRIP + step + lane;
      const u64 key = i < count ? keys[i] : NO_KEY;
      const u64 before = i && i < count ? keys[i - 1] : NO_KEY;
      const bool fresh = is_fresh(key, before);
      const u32 found = __ballot_sync(0xffffffffu, fresh);
      const u64 at = base + __popc(found & ((1u << lane) - 1));
      base += __popc(found);
      const u32 row = (u32)(key >> 32), row_before = (u32)(before >> 32);
      if (fresh) targets[at] = (u32)key;
      if (fresh && row != row_before) atomicSub(&row_counts[row], (u32)at);
      if (before != NO_KEY && row != row_before) atomicAdd(&row_counts[row_before], (u32)at);
      if (i == count - 1 && key != NO_KEY) atomicAdd(&row_counts[row], (u32)(at + fresh));
    }
  }
}

// How the weights of one edge become one (kernels/prepare/weights.py).
#define MIN 0
#define MAX 1
#define SUM 2

#define WARPS 8  // of a block, at most
#define MANTISSA 23
#define EXPONENTS 256
#define INFINITE (255u << MANTISSA)
#define TOO_LARGE (1ull << 32)

// Bits of either kind of weight rise with the weight.
template <u32 HOW>
__device__ inline u64 combine(u64 bits, u64 more) {
  if (HOW == SUM) return bits + more;
  return (HOW == MIN) == (more < bits) ? more : bits;
}

// Bits of a sum of floats; sums: of their mantissas, by exponent.
__device__ inline u64 sum_of_floats(const u64 *sums) {
  double total = 0;
  for (u32 exponent = 0; exponent < EXPONENTS - 1; ++exponent)
    if (sums[exponent])
      total += ldexp((double)sums[exponent], (int)(exponent ? exponent : 1) - 127 - MANTISSA);
  const u32 bits = __float_as_uint((float)total);
  return bits < INFINITE ? bits : TOO_LARGE;
}

// By a warp: the weights of all keys from ``first`` on that are the same. sums: of the warp; floats are
// added up there in integers, so that the order of rows does not matter.
template <u32 HOW, bool FLOATS>
__device__ inline u64 combine_run(const u64 *__restrict__ keys, const u32 *__restrict__ weights,
                                  u64 first, u64 count, u64 *sums) {
  const u32 lane = threadIdx.x & 31;
  const u64 key = keys[first];
  u64 bits = HOW == MIN ? TOO_LARGE : 0;
  if (FLOATS && HOW == SUM) {
    for (u32 exponent = lane; exponent < EXPONENTS; exponent += 32) sums[exponent] = 0;
    __syncwarp();
  }
  for (u64 i = first + lane; i < count && keys[i] == key; i += 32) {
    const u32 own = weights[i], exponent = own >> MANTISSA, mantissa = own & ((1u << MANTISSA) - 1);
    if (FLOATS && HOW == SUM)
      atomicAdd(&sums[exponent], (u64)(exponent ? mantissa | 1u << MANTISSA : mantissa));
    else
      bits = combine<HOW>(bits, own);
  }
  if (FLOATS && HOW == SUM) {
    __syncwarp();
    if (lane == 0) bits = sum_of_floats(sums);
    __syncwarp();  // before they are those of another run
    return __shfl_sync(0xffffffffu, bits, 0);
  }
  for (u32 step = 16; step; step /= 2) bits = combine<HOW>(bits, __shfl_xor_sync(0xffffffffu, bits, step));
  return bits;
}

// Weights of distinct keys, one after the other, as ``write_rows`` writes their targets. weights: by
// key. ends: as there. large: receives how many are more than 32 bits can say.
template <u32 HOW, bool FLOATS>
__global__ void combine_weights(const u64 *__restrict__ keys, u64 count, u64 strips,
                                const u64 *__restrict__ ends, const u32 *__restrict__ weights,
                                u32 *__restrict__ combined, u64 *large) {
  __shared__ u64 sums[FLOATS && HOW == SUM ? WARPS : 1][EXPONENTS];
  const u32 lane = threadIdx.x & 31, warp = FLOATS && HOW == SUM ? threadIdx.x >> 5 : 0;
  FOR_STRIPS(strip, strips) {
    u64 base = strip ? ends[strip - 1] : 0;
    for (u32 step = 0; step < LONG_STRIP; step += 32) {
      const u64 i = strip * LONG_STRIP + step + lane;
      const u64 key = i < count ? keys[i] : NO_KEY;
      const bool fresh = is_fresh(key, i && i < count ? keys[i - 1] : NO_KEY);
      const u32 found = __ballot_sync(0xffffffffu, fresh);
      const u64 at = base + __popc(found & ((1u << lane) - 1));
      base += __popc(found);
      u64 bits = fresh ? weights[i] : 0;
      const bool several = fresh && i + 1 < count && keys[i + 1] == key;
      for (u32 runs = __ballot_sync(0xffffffffu, several); runs; runs &= runs - 1) {
        const u32 owner = __ffs(runs) - 1;
        const u64 of_run = combine_run<HOW, FLOATS>(keys, weights, i - lane + owner, count, sums[warp]);
        if (lane == owner) bits = of_run;
      }
      if (fresh && bits >= TOO_LARGE) atomicAdd(large, 1ull);
      if (fresh) combined[at] = (u32)bits;
    }
  }
}
