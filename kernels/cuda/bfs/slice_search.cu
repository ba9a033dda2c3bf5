// Breadth-first search over slices, in one cooperative launch: BLEST's form (Elbek and Kaya, Blest:
// Blazingly Efficient BFS using Tensor Cores), by bit operations.
//
// Columns of the adjacency matrix, eight to a set, are cut into slices: a row, and a mask of the
// columns that it has entries in (section 3). A virtual set is up to 128 slices of one set, a warp's
// work, four a lane (section 3.1). A level goes through the virtual sets of all sets in which a
// vertex of the frontier stands: a row whose mask meets the frontier's bits is found. A product of
// bit matrices (section 4.1) would say as much as one AND does, and later.
//
// What is found makes the next queue in one of two ways: at once, by the lane that comes first to
// the row's set (Algorithm 2); or, where a level is large, by a sweep over all distances after it,
// so that finding takes no atomic operation (section 4.2; distances are what is marked). There is
// no direction to choose, no counter but the queue's length, and one meeting a level: on small
// graphs, levels cost what they cost however little they do.
#include "base/warp.cuh"
#include "base/work.cuh"

#define SET 8         // columns of a set
#define COLUMNS 4     // slices of a lane
#define ALONE 64      // virtual sets of a level that one block does, while the others wait
#define LONG_RANGE 8  // virtual sets of a set that a lane queues by itself, at most
#define LAST_LEVEL 254

// A vertex has a place, in the order of the slices. rows: of slice k of virtual set s, at
// [32 s + k mod 32], component k div 32; masks: a byte each, the same way. first: of each set the
// first of its virtual sets, and the end. place: of each vertex. vertex: at each place.
struct Slices {
  const uint4 *rows;
  const u32 *masks;
  const u32 *first;
  const u32 *place;
  const u32 *vertex;
  u32 sets;
  u32 vertices;
};

struct Control {
  u64 arrived;
  u64 clocks[LAST_LEVEL + 1];  // when each level began; the last one, when the search ended
  u32 queued[3];               // at this level, the next, and the one whose time is over
  u32 level;  // where one block, or the search, has ended
  u32 left;   // virtual sets that are queued then
};

// distance, parent: of all places of all sets, parents by place; given_distance, given_parent: the
// same by vertex, written at the end. stamp: of each set, the last level that queued it. queue:
// virtual sets, each with its set, of two levels in turn.
struct Search {
  u8 *distance;
  u32 *parent;
  u32 *stamp;
  uint2 *queue[2];
  Control *control;
  u8 *given_distance;
  u32 *given_parent;
  u32 source;      // its place
  u32 max_level;   // LAST_LEVEL at most
  u32 sweep_from;  // virtual sets of a level that is swept after
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
      const u32 begin = __shfl_sync(ALL, first[c], owner), count = __shfl_sync(ALL, length[c], owner);
      const u32 its = __shfl_sync(ALL, set[c], owner), to = __shfl_sync(ALL, at, owner);
      for (u32 k = lane_id(); k < count; k += 32) queue[to + k] = {begin + k, its};
    }
    at += length[c];
  }
}

// Go through the virtual sets of a level. AT_ONCE: whether to queue what is found.
template <bool AT_ONCE>
__device__ __noinline__ void look(const Slices &slices, const Search &search, u32 level, u32 count,
                                  u32 *queued, Crew crew) {
  const uint2 *queue = search.queue[level & 1];
  for (u32 i = crew.warp; i < count; i += crew.warps) {
    const uint2 task = __ldcg(&queue[i]);
    const uint4 four = __ldg(&slices.rows[task.x * 32 + lane_id()]);
    const u32 masks = __ldg(&slices.masks[task.x * 32 + lane_id()]);
    const u8 column = __ldcg(&search.distance[task.y * SET + lane_id() % SET]);
    const u32 frontier = __ballot_sync(ALL, column == level) & 0xff;
    const u32 row[COLUMNS] = {four.x, four.y, four.z, four.w};
    const u32 met = masks & frontier * 0x01010101u;
    u32 set[COLUMNS];
    bool fresh[COLUMNS];
#pragma unroll
    for (int c = 0; c < COLUMNS; c++)
      fresh[c] = met >> 8 * c & 0xff && __ldcg(&search.distance[row[c]]) == 0xff;
#pragma unroll
    for (int c = 0; c < COLUMNS; c++) {
      if (!fresh[c]) continue;
      search.distance[row[c]] = (u8)(level + 1);
      search.parent[row[c]] = task.y * SET + __ffs(met >> 8 * c & 0xff) - 1;
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

// Whether one of eight bytes is `byte`.
__device__ inline bool is_among(uint2 bytes, u32 byte) {
  const u32 low = bytes.x ^ byte * 0x01010101u, high = bytes.y ^ byte * 0x01010101u;
  return ((low - 0x01010101u & ~low) | (high - 0x01010101u & ~high)) & 0x80808080u;
}

// Queue the sets in which vertices at distance `level` stand.
__device__ __noinline__ void sweep(const Slices &slices, const Search &search, u32 level, u32 *queued,
                                   Crew crew) {
  for (u32 base = crew.warp * 32; base < slices.sets; base += crew.warps * 32) {
    const u32 set[1] = {base + lane_id()};
    const uint2 all = set[0] < slices.sets ? __ldcg((const uint2 *)search.distance + set[0]) : uint2{};
    const bool fresh[1] = {set[0] < slices.sets && is_among(all, level)};
    enqueue(slices, fresh, set, search.queue[level & 1], queued);
  }
}

// A search that begins: nothing but its source is reached.
__device__ void begin(const Slices &slices, const Search &search) {
  Control &control = *search.control;
  FOR_ITEMS(i, (u64)slices.sets * SET / 4) {
    ((uint4 *)search.parent)[i] = {NONE, NONE, NONE, NONE};
    ((u32 *)search.distance)[i] = i == search.source / 4 ? ~(0xffu << search.source % 4 * 8) : ALL;
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

// One that ends: what was found, by vertex.
__device__ void give(const Slices &slices, const Search &search) {
  FOR_ITEMS(v, slices.vertices) {
    const u32 place = slices.place[v], parent = __ldcg(&search.parent[place]);
    search.given_distance[v] = __ldcg(&search.distance[place]);
    search.given_parent[v] = parent == NONE ? NONE : slices.vertex[parent];
  }
}

// Small levels, one after the other, by one block: ``control`` says which level is the next one, and
// how many virtual sets it has. Nothing else is written that the others, who are on their way to a
// barrier, may still read.
__device__ __noinline__ void go_alone(const Slices &slices, const Search &search, u32 level,
                                      u32 count) {
  __shared__ u32 queued[2];  // of levels in turn
  Control &control = *search.control;
  if (threadIdx.x == 0) queued[0] = queued[1] = 0;
  __syncthreads();
  while (count && count <= ALONE && level < search.max_level) {
    if (threadIdx.x == 0) control.clocks[level] = clock64();
    look<true>(slices, search, level, count, &queued[level & 1], own_block());
    __syncthreads();
    count = queued[level & 1];
    if (threadIdx.x == 0) queued[level + 1 & 1] = 0;
    __syncthreads();
    level++;
  }
  if (threadIdx.x) return;
  control.level = level;
  control.left = count;
}

template <int THREADS>
__global__ void __launch_bounds__(THREADS, 1)
    slice_search(const __grid_constant__ Slices slices, const __grid_constant__ Search search) {
  Control *control = search.control;
  const bool leader = blockIdx.x == 0 && threadIdx.x == 0;
  begin(slices, search);
  grid_barrier(&control->arrived);
  u32 level = 0, count = __ldcg(&control->queued[0]);
  while (count && level < search.max_level) {
    if (count <= ALONE) {
      if (blockIdx.x == 0) go_alone(slices, search, level, count);
      grid_barrier(&control->arrived);
      level = __ldcg(&control->level);
      count = __ldcg(&control->left);
      if (leader) control->queued[(level + 1) % 3] = 0;
      grid_barrier(&control->arrived);  // before a block that goes alone writes there again
      continue;
    }
    u32 *queued = &control->queued[(level + 1) % 3];
    if (leader) {
      control->queued[(level + 2) % 3] = 0;
      control->clocks[level] = clock64();
    }
    if (count < search.sweep_from) {
      look<true>(slices, search, level, count, queued, spread_grid());
    } else {
      look<false>(slices, search, level, count, queued, spread_grid());
      grid_barrier(&control->arrived);
      sweep(slices, search, level + 1, queued, spread_grid());
    }
    grid_barrier(&control->arrived);
    level++;
    count = __ldcg(&control->queued[level % 3]);
  }
  if (leader) {
    control->clocks[level] = clock64();
    control->level = level;
    control->left = count;
  }
  give(slices, search);
}
