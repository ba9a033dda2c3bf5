// Breadth-first search through levels that are too small for the whole device: roads, grids,
// chains. One thread-block cluster runs them.
//
// What a level costs is latency, so a level is one barrier of the cluster; the queues, and where they
// fit the bits of visited vertices, lie in its shared memory; a thread knows where to look for its
// vertex before it knows how many there are; results are written and found vertices' rows
// fetched ahead while the barrier is under way. A level that grows too large, or has a vertex of
// many edges, goes back to wide_search: with `partial`, the queue holds the vertices that are left to
// push at this level.
#include "cluster.cuh"
#include "passes.cuh"

#define NEAR 3072            // places of a block's queue in shared memory; more lie in `spill`
#define BLOCK_FRONTIER 2048  // vertices that a block expands in a level, at most
#define LIGHT 32             // edges that a thread follows alone
#define SPILL (BLOCK_FRONTIER * LIGHT)
#define HEAVY 0x80000000u  // in a block's count: it has left vertices of more edges aside

// padded: rows of WIDTH entries (derive.cu); WIDTH 0: none, rows are read by their offsets.
struct Padded {
  const u32 *padded;
  u32 *spill;  // [2][blocks][SPILL]
};

// A block's parts of two levels' frontiers, the one that is expanded and the one that is found.
struct Cohort {
  u32 queue[2][NEAR];
  u32 count[3];  // vertices in the queue of level i mod 3, and HEAVY; others read it for a level
};

template <class Offset, int WIDTH, int BLOCKS, bool LOCAL>
struct Narrow {
  const Graph<Offset> &graph;
  const Search<Offset, int> &search;
  const Padded &rows;
  Cohort &cohort;
  u32 *visited;                // LOCAL: this block's words of the bitmap, every BLOCKS-th
  const Queue<Offset> &aside;  // takes vertices of many edges
  u32 level;                   // of what is found

  // Entries that were followed and found something. Their distances and parents are written, and
  // their rows fetched, later: while the cluster meets (write_found).
  u32 source, target[4], fresh;

  __device__ u32 *spilled(u32 level, u32 rank, u32 index) {
    return rows.spill + ((u64)(level & 1) * BLOCKS + rank) * SPILL + index - NEAR;
  }

  __device__ void put(u32 level, u32 index, u32 vertex) {
    if (index < NEAR) {
      cohort.queue[level & 1][index] = vertex;
    } else {
      *spilled(level, blockIdx.x, index) = vertex;
      __threadfence();  // the barrier orders shared memory only
    }
  }

  __device__ u32 get(u32 level, u32 rank, u32 index) {
    if (index < NEAR) return read_from<BLOCKS>(&cohort.queue[level & 1][index], rank);
    return __ldcg(spilled(level, rank, index));
  }

  // Marks the vertex visited; gives the word that its bit stood in before. Nothing is marked for
  // NONE, but without a branch: four of these are to be under way at once.
  __device__ u32 mark(u32 vertex) {
    u32 word = vertex < LONGER ? vertex >> 5 : blockIdx.x;
    u32 bit = vertex < LONGER ? 1u << (vertex & 31) : 0;
    if (LOCAL) return or_to<BLOCKS>(visited + word / BLOCKS, word % BLOCKS, bit);
    return atomicOr(visited + word, bit);
  }

  __device__ void write_found() {
#pragma unroll
    for (int i = 0; i < 4; i++) {
      if (fresh >> i & 1) {
        if (WIDTH) prefetch(rows.padded + (u64)target[i] * WIDTH);
        search.distance[target[i]] = (int)level;
        search.parent[target[i]] = source;
      }
    }
    fresh = 0;
  }

  // Called by whole warps; entries that are NONE or LONGER lead nowhere.
  __device__ void follow(u32 vertex, u32 a, u32 b, u32 c, u32 d) {
    write_found();
    source = vertex;
    target[0] = a, target[1] = b, target[2] = c, target[3] = d;
    bool mine[4];
    u32 seen[4], before[4], count = 0;
#pragma unroll
    for (int i = 0; i < 4; i++) seen[i] = mark(target[i]);
#pragma unroll
    for (int i = 0; i < 4; i++) {
      mine[i] = target[i] < LONGER && !(seen[i] >> (target[i] & 31) & 1);
      u32 finders = __ballot_sync(ALL, mine[i]);
      before[i] = count + __popc(finders & lanes_before());
      count += __popc(finders);
      if (mine[i]) fresh |= 1u << i;
    }
    if (!count) return;
    u32 base = lane_id() == 0 ? atomicAdd(&cohort.count[level % 3], count) : 0;
    base = __shfl_sync(ALL, base, 0) & ~HEAVY;
#pragma unroll
    for (int i = 0; i < 4; i++)
      if (mine[i]) put(level, base + before[i], target[i]);
  }

  // By their offsets. Rows of many edges are left aside, for the whole device.
  __device__ void follow_rows(bool mine, u32 vertex) {
    u64 at = mine ? graph.offsets[vertex] : 0, end = mine ? graph.offsets[vertex + 1] : 0;
    if (end - at > LIGHT) {
      u64 base = atomicAdd(&search.control->counters[1].queued, QUEUED(1, end - at));
      u32 index = QUEUED_VERTICES(base);
      aside.vertex[index] = vertex;
      aside.row[index] = (Offset)at;
      aside.before[index] = (Offset)QUEUED_EDGES(base);
      __threadfence();
      atomicOr(&cohort.count[level % 3], HEAVY);
      at = end;
    }
    auto one = [&](u64 i) { return i < end ? entry<true>(graph.targets, i) : NONE; };
    for (; __any_sync(ALL, at < end); at += 4)
      follow(vertex, one(at), one(at + 1), one(at + 2), one(at + 3));
  }

  // Called by whole warps: follow the rows of some lanes' vertices.
  __device__ void expand(bool mine, u32 vertex) {
    if constexpr (WIDTH == 0) {
      follow_rows(mine, vertex);
    } else {
      const uint4 *row = (const uint4 *)(rows.padded + (u64)vertex * WIDTH);
      uint4 four[WIDTH / 4];
#pragma unroll
      for (int i = 0; i < WIDTH / 4; i++)
        four[i] = mine ? __ldg(row + i) : uint4{NONE, NONE, NONE, NONE};
      bool longer = four[WIDTH / 4 - 1].w == LONGER;
      u32 none = longer ? NONE : 0;
#pragma unroll
      for (int i = 0; i < WIDTH / 4; i++)
        follow(vertex, four[i].x | none, four[i].y | none, four[i].z | none, four[i].w | none);
      if (__any_sync(ALL, longer)) follow_rows(longer, vertex);
    }
  }
};

template <class Offset, int WIDTH, int BLOCKS, bool LOCAL, int THREADS>
__global__ void CLUSTER(BLOCKS) __launch_bounds__(THREADS, 1)
    narrow_search(const __grid_constant__ Graph<Offset> graph,
                  const __grid_constant__ Search<Offset, int> search,
                  const __grid_constant__ Padded rows) {
  __shared__ Cohort cohort;
  __shared__ u32 buffers[THREADS / 32][BUFFER];
  extern __shared__ u32 bits[];  // LOCAL: this block's words of the bitmap
  const u32 block = blockIdx.x, thread = threadIdx.x;
  const bool leader = block == 0 && thread == 0;
  Control *control = search.control;
  if (!search.resume) {
    begin(graph, search);
    __syncwarp();
    cluster_arrive<BLOCKS>();
    cluster_wait<BLOCKS>();
  }
  const u32 turn = __ldcg(&control->turn), entered = __ldcg(&control->level);
  const u32 first = __ldcg(&control->frontier);
  const Queue<Offset> &queue = search.queue[turn >> 1], &other = search.queue[turn >> 1 ^ 1];
  u32 *bitmap = search.visited[turn & 1];
  const u32 words = (graph.vertices + TILE - 1) / TILE * TILE_WORDS;
  Narrow<Offset, WIDTH, BLOCKS, LOCAL> narrow = {
      graph, search, rows, cohort, LOCAL ? bits : bitmap, queue, entered, 0, {}, 0};
  const u32 visited_before = __ldcg(&control->visited);
  u32 visited = visited_before, level = entered, status = RUNNING, total;
  bool partial;

  // The frontier, dealt out in turn.
  u32 share = first / BLOCKS + (block < first % BLOCKS);
  for (u32 i = thread; i < share; i += THREADS)
    narrow.put(level, i, __ldcg(queue.vertex + i * BLOCKS + block));
  for (u32 i = thread; LOCAL && i * BLOCKS + block < words; i += THREADS)
    bits[i] = __ldcg(bitmap + i * BLOCKS + block);
  if (thread < 3) cohort.count[thread] = thread == level % 3 ? share : 0;
  if (leader) control->counters[0] = control->counters[1] = Counters{};
  __syncthreads();
  cluster_arrive<BLOCKS>();
  cluster_wait<BLOCKS>();

  u64 clock = clock64();
  for (;; level++) {
    // A thread's vertices stand in the queue of block `rank`, BLOCKS places apart.
    const u32 rank = thread % BLOCKS;
    u32 index = thread / BLOCKS * BLOCKS + block;
    u32 vertex = narrow.get(level, rank, index);
    u32 counted = read_from<BLOCKS>(&cohort.count[level % 3], lane_id() % BLOCKS);
    u32 count = __shfl_sync(ALL, counted, rank) & ~HEAVY;
    partial = __any_sync(ALL, counted & HEAVY);
    total = warp_sum(lane_id() < BLOCKS ? counted & ~HEAVY : 0);
    if (level > entered) {
      visited += total;
      if (leader) search.levels[level - 1 - search.first_level].found = total;
    }
    if (partial) status = WIDE;
    else if (total == 0 || level >= search.max_level) status = DONE;
    else if (total > BLOCKS * BLOCK_FRONTIER) status = WIDE;
    else if (level - search.first_level == search.level_capacity) status = MORE;
    if (status != RUNNING) break;

    if (thread == 0) cohort.count[(level + 2) % 3] = 0;  // read a level ago, filled in the next
    narrow.level = level + 1;
    while (__any_sync(ALL, index < count)) {
      narrow.expand(index < count, vertex);
      index += THREADS;
      if (index < count) vertex = narrow.get(level, rank, index);
    }
    __syncthreads();
    cluster_arrive_shared<BLOCKS>();
    narrow.write_found();
    if (leader) {
      u64 ended = clock64();
      search.levels[level - search.first_level] = {0, ended - clock, 0, 0};
      clock = ended;
    }
    __syncwarp();
    cluster_wait<BLOCKS>();
  }

  // Put the bits and the queue where the whole device finds them. (A barrier for bits that other
  // blocks have set: those of the levels order each block's own writes only, as marking a bit waits
  // for its answer.)
  __syncthreads();
  cluster_arrive<BLOCKS>();
  cluster_wait<BLOCKS>();
  for (u32 i = thread; LOCAL && i * BLOCKS + block < words; i += THREADS)
    bitmap[i * BLOCKS + block] = bits[i];
  Enqueue<Offset> back = {graph.offsets, other, &control->counters[0].queued,
                          buffers[thread / 32]};
  u32 own = cohort.count[level % 3] & ~HEAVY;
  for (u32 i = thread - lane_id(); i < own; i += THREADS) {
    bool mine[1] = {i + lane_id() < own};
    u32 vertex[1] = {mine[0] ? narrow.get(level, block, i + lane_id()) : 0};
    back.add(mine, vertex);
  }
  if (back.count) back.flush();
  __syncthreads();
  cluster_arrive<BLOCKS>();
  cluster_wait<BLOCKS>();
  if (status == DONE) settle(graph, search, bitmap);
  if (!leader) return;
  // Vertices left aside are pushed first, at the level that they belong to.
  u64 queued = __ldcg(&control->counters[partial ? 1 : 0].queued);
  control->partial = partial;
  control->counters[0].found = total;
  control->turn = partial ? turn : turn ^ 2;
  control->level = partial ? level - 1 : level;
  control->visited = partial ? visited - total : visited;
  control->unvisited_edges = (u64)((float)control->unvisited_edges *
                                   (float)(graph.vertices - visited + 1) /
                                   (float)(graph.vertices - visited_before + 1));
  control->found = partial ? 1 : total;  // not 0: there is a level to do
  control->frontier = QUEUED_VERTICES(queued);
  control->forward = QUEUED_EDGES(queued);
  control->queued = 1;
  control->status = status;
}
