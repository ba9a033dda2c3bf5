// Breadth-first search over slices: BLEST's form (Elbek and Kaya, Blest: Blazingly Efficient BFS using
// Tensor Cores), as one cooperative launch that a search by rows can be compared with.
//
// Columns of the adjacency matrix, eight to a set, are cut into slices: a row, and a mask of the
// columns that it has entries in (section 3). A virtual set is up to 128 slices of one set, a warp's
// work, four a lane (section 3.1). A level goes through the virtual sets of all sets that a frontier
// vertex stands in: a row whose mask meets the frontier's bits is found. No direction but this one.
//
// What is found makes the next queue in one of two ways: at once, by the lane that comes first to
// the row's set (Algorithm 2); or, where a level is large, by a sweep over all distances after it, so
// that finding takes no atomic operation (section 4.2, Algorithm 3; here distances are what is marked).
#include "base/warp.cuh"
#include "base/work.cuh"

#define SET 8         // columns of a set
#define COLUMNS 4     // slices of a lane
#define SLICES 128    // of a virtual set
#define ALONE 64      // virtual sets of a level that one block does, while the others wait
#define LONG_RANGE 8  // virtual sets of a set that a lane queues by itself, at most

// rows: of slice k of virtual set s, at [32 s + k mod 32], component k div 32; masks: a byte each, the
// same way. first: of each set the first of its virtual sets, and the end.
struct Slices {
  const uint4 *rows;
  const u32 *masks;
  const u32 *first;
  u32 sets;
};

struct Control {
  u64 arrived;
  u32 queued[3];  // at this level, the next, and the one whose time is over
  u32 level;
};

// distance, parent: of all vertices of all sets. stamp: of each set, the last level that queued it.
// queue: virtual sets, each with its set, of two levels in turn.
template <class Distance>
struct Search {
  Distance *distance;
  u32 *parent;
  u32 *stamp;
  uint2 *queue[2];
  Control *control;
  u32 source;
  u32 sweep_from;  // virtual sets of a level that is swept after
};

template <class Distance>
__device__ inline bool is_unreached(Distance distance) {
  return distance == (Distance)-1;
}

// Which of a lane's slices meet the frontier: by the masks' bits.
struct Bits {
  __device__ static void meet(u32 masks, u32 frontier, u32 (&met)[COLUMNS]) {
    const u32 all = masks & frontier * 0x01010101u;
#pragma unroll
    for (int c = 0; c < COLUMNS; c++) met[c] = all >> 8 * c & 0xff;
  }
};

// The same by two products of bit matrices, whose sums come out where the slices' rows are held
// (section 4.1).
struct Tensor {
  __device__ static void meet(u32 masks, u32 frontier, u32 (&met)[COLUMNS]) {
    const u32 lane = lane_id();
    const u32 chosen = lane % 9 == 0 ? frontier : lane % 9 == 4 ? frontier << 8 : 0;
    multiply(masks & 0xffff, chosen, met[0], met[1]);
    multiply(masks >> 16, chosen, met[2], met[3]);
  }

  __device__ static void multiply(u32 a, u32 b, u32 &first, u32 &second) {
    asm("mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.and.popc {%0, %1}, {%2}, {%3}, {%4, %4};"
        : "=r"(first), "=r"(second)
        : "r"(a), "r"(b), "r"(0));
  }
};

// Warps by turns of the blocks, so that little work is spread over all multiprocessors.
__device__ inline Crew spread_grid() {
  return {threadIdx.x / 32 * gridDim.x + blockIdx.x, gridDim.x * (blockDim.x / 32)};
}

// Queue the virtual sets of some lanes' sets. Called by whole warps.
template <int N>
__device__ inline void enqueue(const Slices &slices, const bool (&fresh)[N], const u32 (&set)[N],
                               uint2 *queue, u32 *queued) {
  bool any = false;
#pragma unroll
  for (int c = 0; c < N; c++) any |= fresh[c];
  if (!__any_sync(ALL, any)) return;
  u32 first[N], length[N], own = 0;
#pragma unroll
  for (int c = 0; c < N; c++) {
    first[c] = fresh[c] ? __ldg(&slices.first[set[c]]) : 0;
    length[c] = fresh[c] ? __ldg(&slices.first[set[c] + 1]) - first[c] : 0;
  }
#pragma unroll
  for (int c = 0; c < N; c++) own += length[c];
  const u32 through = warp_scan(own);
  u32 at = 0;
  if (lane_id() == 31) at = atomicAdd(queued, through);
  at = __shfl_sync(ALL, at, 31) + through - own;
#pragma unroll
  for (int c = 0; c < N; c++) {
    const bool is_long = length[c] > LONG_RANGE;
    for (u32 k = 0; !is_long && k < length[c]; k++) queue[at + k] = {first[c] + k, set[c]};
    for (u32 open = __ballot_sync(ALL, is_long); open; open &= open - 1) {
      const int owner = __ffs(open) - 1;
      const u32 begin = __shfl_sync(ALL, first[c], owner), end = begin + __shfl_sync(ALL, length[c], owner);
      const u32 its = __shfl_sync(ALL, set[c], owner), to = __shfl_sync(ALL, at, owner);
      for (u32 k = begin + lane_id(); k < end; k += 32) queue[to + k - begin] = {k, its};
    }
    at += length[c];
  }
}

// Go through the virtual sets of a level. AT_ONCE: whether to queue what is found.
template <class Product, bool AT_ONCE, class Distance>
__device__ __noinline__ void look(const Slices &slices, const Search<Distance> &search, u32 level,
                                  u32 count, u32 *queued, Crew crew) {
  const uint2 *queue = search.queue[level & 1];
  for (u32 i = crew.warp; i < count; i += crew.warps) {
    const uint2 task = __ldcg(&queue[i]);
    const uint4 four = __ldg(&slices.rows[task.x * 32 + lane_id()]);
    const u32 masks = __ldg(&slices.masks[task.x * 32 + lane_id()]);
    const Distance column = __ldcg(&search.distance[task.y * SET + lane_id() % SET]);
    const u32 frontier = __ballot_sync(ALL, column == (Distance)level) & 0xff;
    const u32 row[COLUMNS] = {four.x, four.y, four.z, four.w};
    u32 met[COLUMNS], set[COLUMNS];
    bool fresh[COLUMNS];
    Product::meet(masks, frontier, met);
#pragma unroll
    for (int c = 0; c < COLUMNS; c++)
      fresh[c] = met[c] && is_unreached(__ldcg(&search.distance[row[c]]));
#pragma unroll
    for (int c = 0; c < COLUMNS; c++) {
      if (!fresh[c]) continue;
      search.distance[row[c]] = (Distance)(level + 1);
      search.parent[row[c]] = task.y * SET + __ffs(masks >> 8 * c & frontier) - 1;
    }
    if (AT_ONCE) {
#pragma unroll
      for (int c = 0; c < COLUMNS; c++) {
        set[c] = row[c] / SET;
        fresh[c] = fresh[c] && atomicExch(&search.stamp[set[c]], level + 1) != level + 1;
      }
      enqueue(slices, fresh, set, search.queue[level + 1 & 1], queued);
    }
  }
}

__device__ inline bool is_any(const u8 *distance, u32 set, u32 level) {
  const uint2 all = __ldcg((const uint2 *)distance + set);
  return __vcmpeq4(all.x, level * 0x01010101u) | __vcmpeq4(all.y, level * 0x01010101u);
}

__device__ inline bool is_any(const int *distance, u32 set, u32 level) {
  bool any = false;
#pragma unroll
  for (int half = 0; half < 2; half++) {
    const int4 some = __ldcg((const int4 *)distance + 2 * set + half);
    any |= some.x == (int)level || some.y == (int)level || some.z == (int)level || some.w == (int)level;
  }
  return any;
}

// Queue the sets in which vertices at distance `level` stand.
template <class Distance>
__device__ __noinline__ void sweep(const Slices &slices, const Search<Distance> &search, u32 level,
                                   u32 *queued, Crew crew) {
  for (u32 base = crew.warp * 32; base < slices.sets; base += crew.warps * 32) {
    const u32 set[1] = {base + lane_id()};
    const bool fresh[1] = {set[0] < slices.sets && is_any(search.distance, set[0], level)};
    enqueue(slices, fresh, set, search.queue[level & 1], queued);
  }
}

// A search that begins: nothing but its source is reached.
template <class Distance>
__device__ void begin(const Slices &slices, const Search<Distance> &search) {
  Control &control = *search.control;
  FOR_ITEMS(i, (u64)slices.sets * SET / 4) {
    ((uint4 *)search.parent)[i] = {NONE, NONE, NONE, NONE};
#pragma unroll
    for (u32 v = 4 * i; v < 4 * i + 4; v++)
      search.distance[v] = v == search.source ? (Distance)0 : (Distance)-1;
  }
  FOR_ITEMS(set, slices.sets) search.stamp[set] = 0;
  const u32 own = search.source / SET, first = slices.first[own];
  const u32 length = slices.first[own + 1] - first;
  FOR_ITEMS(k, length) search.queue[0][k] = {first + (u32)k, own};
  if (first_item() == 0) {
    control.queued[0] = length;
    control.queued[1] = control.queued[2] = 0;
  }
}

// Small levels, one after the other, by one block.
template <class Product, class Distance>
__device__ __noinline__ void go_alone(const Slices &slices, const Search<Distance> &search, u32 level,
                                      u32 count) {
  __shared__ u32 queued[2];  // of levels in turn
  if (threadIdx.x == 0) queued[0] = queued[1] = 0;
  __syncthreads();
  while (count && count <= ALONE) {
    look<Product, true>(slices, search, level, count, &queued[level & 1], own_block());
    __syncthreads();
    count = queued[level & 1];
    if (threadIdx.x == 0) queued[level + 1 & 1] = 0;
    __syncthreads();
    level++;
  }
  if (threadIdx.x) return;
  search.control->level = level;
  search.control->queued[level % 3] = count;
  search.control->queued[(level + 1) % 3] = 0;
}

template <class Product, class Distance, int THREADS>
__global__ void __launch_bounds__(THREADS, 1)
    search_slices(const __grid_constant__ Slices slices,
                  const __grid_constant__ Search<Distance> search) {
  Control *control = search.control;
  begin(slices, search);
  grid_barrier(&control->arrived);
  u32 level = 0;
  while (true) {
    const u32 count = __ldcg(&control->queued[level % 3]);
    if (!count) break;
    if (count <= ALONE) {
      if (blockIdx.x == 0) go_alone<Product>(slices, search, level, count);
      grid_barrier(&control->arrived);
      level = __ldcg(&control->level);
      grid_barrier(&control->arrived);
      continue;
    }
    u32 *queued = &control->queued[(level + 1) % 3];
    if (first_item() == 0) control->queued[(level + 2) % 3] = 0;
    if (count < search.sweep_from) {
      look<Product, true>(slices, search, level, count, queued, spread_grid());
    } else {
      look<Product, false>(slices, search, level, count, queued, spread_grid());
      grid_barrier(&control->arrived);
      sweep(slices, search, level + 1, queued, spread_grid());
    }
    grid_barrier(&control->arrived);
    level++;
  }
  if (first_item() == 0) control->level = level;
}

// ---- From rows to slices ----

// Where vertices with like neighbours stand together: by the least of two hashes over each row's
// targets (a cheap stand-in for the paper's JaccardWithWindows, Algorithm 1). A warp a row.
template <class Offset>
__global__ void min_hashes(const Offset *offsets, const u32 *targets, u32 rows, u64 *hashes) {
  FOR_STRIPS(row, rows) {
    u32 least[2] = {NONE, NONE};
    for (u64 i = offsets[row] + lane_id(); i < offsets[row + 1]; i += 32) {
      u32 mixed = (targets[i] + 1) * 0x9e3779b1u;
      mixed = (mixed ^ mixed >> 15) * 0x85ebca77u;
      least[0] = min(least[0], mixed ^ mixed >> 13);
      mixed = (mixed ^ mixed >> 16) * 0xc2b2ae3du;
      least[1] = min(least[1], mixed ^ mixed >> 16);
    }
    for (int step = 16; step; step >>= 1)
      for (int k = 0; k < 2; k++) least[k] = min(least[k], __shfl_xor_sync(ALL, least[k], step));
    if (lane_id() == 0) hashes[row] = (u64)least[0] << 32 | least[1];
  }
}

// A key for each entry: its source's set, its target, its source's place in the set. place: of each
// vertex, in the order of the slices.
template <class Offset>
__global__ void slice_keys(const Offset *offsets, const u32 *targets, u64 entries, u32 rows,
                           const u32 *place, u64 *keys) {
  FOR_STRIPS(strip, (entries + LONG_STRIP - 1) / LONG_STRIP) {
    const u64 begin = strip * LONG_STRIP, end = min(begin + LONG_STRIP, entries);
    const u32 low = row_of(offsets, 0u, rows, begin), high = row_of(offsets, low, rows, end - 1) + 1;
    for (u64 i = begin + lane_id(); i < end; i += 32) {
      const u32 column = place[row_of(offsets, low, high, i)];
      keys[i] = (u64)(column / SET) << 35 | (u64)place[targets[i]] << 3 | column % SET;
    }
  }
}

// Slices of sorted keys. starts: the first key of each. first_slice: of each set the first of its
// slices. rows, masks, first: see Slices; both are zero where they are not written.
__global__ void write_slices(const u64 *keys, u64 entries, const u64 *starts, u64 slices,
                             const u64 *first_slice, const u32 *first, u32 *rows, u8 *masks) {
  FOR_ITEMS(j, slices) {
    const u64 slice = keys[starts[j]] >> 3;
    u32 mask = 0;
    for (u64 i = starts[j]; i < entries && keys[i] >> 3 == slice; i++) mask |= 1u << (keys[i] & 7);
    const u32 set = (u32)(slice >> 32);
    const u64 k = j - first_slice[set];
    const u64 at = ((first[set] + k / SLICES) * 32 + k % 32) * COLUMNS + k % SLICES / 32;
    rows[at] = (u32)slice;
    masks[at] = (u8)mask;
  }
}
