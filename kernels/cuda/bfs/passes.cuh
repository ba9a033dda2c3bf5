// Passes over all vertices: before a search, between its levels, after it.
#include "bfs/pull.cuh"

// A search that begins: nothing but its source is visited.
template <class Offset, class Distance>
__device__ void begin(const Graph<Offset> &graph, const Search<Offset, Distance> &search) {
  Control &control = *search.control;
  u32 words = (graph.vertices + STRIP - 1) / STRIP * STRIP_WORDS;
  for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < words; i += gridDim.x * blockDim.x)
    search.visited[0][i] = i == search.source >> 5 ? 1u << (search.source & 31) : 0;
  if (search.resident) {  // HOT pushes claim by parents
    const u32 thread = blockIdx.x * blockDim.x + threadIdx.x;
    for (u32 i = thread; i < graph.vertices / 4; i += gridDim.x * blockDim.x)
      ((uint4 *)search.parent)[i] = {NONE, NONE, NONE, NONE};
    const u32 last = graph.vertices / 4 * 4 + thread;
    if (last < graph.vertices) search.parent[last] = NONE;
  }
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    Offset row = graph.offsets[search.source];
    search.distance[search.source] = 0;
    search.parent[search.source] = NONE;
    search.queue[0].vertex[0] = search.source;
    search.queue[0].row[0] = row;
    search.queue[0].before[0] = 0;
    control.forward = graph.offsets[search.source + 1] - row;
    control.unvisited_edges = graph.edges - control.forward;
    control.pull_bound = ~0ull;
    control.more = 1;
    control.level = control.turn = control.partial = control.small_levels = 0;
    control.frontier = control.found = control.visited = control.queued = 1;
  }
}

// Put the vertices at distance `level` in the queue, after levels that made none.
template <class Offset, class Distance>
__device__ __noinline__ void gather(const Graph<Offset> &graph,
                                    const Search<Offset, Distance> &search, const u32 *visited,
                                    u32 level, Enqueue<Offset> queue) {
  u32 strips = (graph.vertices + STRIP - 1) / STRIP;
  u32 warps = gridDim.x * (blockDim.x / 32);
  for (u32 strip = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32; strip < strips; strip += warps) {
    uint4 words = ((const uint4 *)visited)[strip];
    u32 word[STRIP_WORDS] = {words.x, words.y, words.z, words.w};
    bool mine[STRIP_WORDS];
    u32 vertex[STRIP_WORDS];
#pragma unroll
    for (int i = 0; i < STRIP_WORDS; i++) {
      vertex[i] = strip * STRIP + i * 32 + lane_id();
      mine[i] = word[i] >> lane_id() & 1 && search.distance[vertex[i]] == (Distance)level;
    }
    queue.add(mine, vertex);
  }
  if (queue.count) queue.flush();
}

// Before a large push: keep what is visited now.
template <class Offset>
__device__ void keep(const Graph<Offset> &graph, const u32 *visited, u32 *kept) {
  u32 strips = (graph.vertices + STRIP - 1) / STRIP;
  for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < strips; i += gridDim.x * blockDim.x)
    ((uint4 *)kept)[i] = ((const uint4 *)visited)[i];
}

// After it: give the vertices that were found their distance, and count them.
template <class Offset, class Distance>
__device__ __noinline__ u32 note(const Graph<Offset> &graph,
                                 const Search<Offset, Distance> &search, const u32 *kept,
                                 const u32 *visited, u32 level) {
  u32 found = 0, words = (graph.vertices + 31) / 32;
  u32 warps = gridDim.x * (blockDim.x / 32);
  u32 warp = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  for (u32 base = warp * 32; base < words; base += warps * 32) {
    const u32 w = base + lane_id();
    if (w >= words) break;
    const u32 old = kept[w], own = visited[w] & ~old;
    found += __popc(own);
    // Beyond the last vertex may be some without edges, or the end of what was asked for: memory
    // comes by 512 bytes, and what is there stays.
    set_distances(search.distance, w, own, w + 1 < words ? old : ~own, level);
  }
  return found;
}

// Say of the vertices that were not reached that they were not. Beside those that were,
// `set_distances` has written there.
template <class Offset, class Distance>
__device__ void settle(const Search<Offset, Distance> &search, const u32 *visited, u32 vertices) {
  u32 words = (vertices + 31) / 32;
  u32 warps = gridDim.x * (blockDim.x / 32);
  u32 warp = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  for (u32 base = warp * 32; base < words; base += warps * 32) {
    u32 own = base + lane_id() < words ? visited[base + lane_id()] : ALL;
    for (u32 open = __ballot_sync(ALL, own != ALL); open; open &= open - 1) {
      int lane = __ffs(open) - 1;
      u32 word = __shfl_sync(ALL, own, lane);
      u32 vertex = (base + lane) * 32 + lane_id();
      if (vertex < vertices && !(word >> lane_id() & 1)) {
        search.distance[vertex] = (Distance)-1;
        search.parent[vertex] = NONE;
      }
    }
  }
}
