// Breadth-first search through levels that are too small for the whole device: roads, grids,
// chains. One thread-block cluster runs them.
//
// What a level costs is latency, so a level is one barrier of the cluster; the queues, and where they
// fit the bits of visited vertices, lie in its shared memory; a thread knows where to look for its
// vertex before it knows how many there are; a vertex's distance and parent are written while its
// row is on its way, and found vertices' rows are fetched ahead while the barrier is under way. A
// level that grows too large, or has a vertex of many edges, goes back to wide_search: with `partial`,
// the queue holds the vertices that are left to push at this level.
#include "bfs/cluster.cuh"
#include "bfs/passes.cuh"

#define NEAR 2048            // places of a block's queue in shared memory; more lie in `spill`
#define BLOCK_FRONTIER 2048  // vertices that a block expands in a level, at most
#define LIGHT 32             // edges that a thread follows alone
#define SPILL (BLOCK_FRONTIER * LIGHT)
#define HEAVY 0x1000000u  // in a block's count: it has left vertices of more edges aside

// What a queue holds: a vertex and its parent.
#define REACHED(vertex, parent) ((u64)(parent) << 32 | (vertex))
#define VERTEX(reached) ((u32)(reached))
#define PARENT(reached) ((u32)((reached) >> 32))

// padded: rows of WIDTH entries (derive.cu); WIDTH 0: none, rows are read by their offsets.
struct Padded {
  const u32 *padded;
  u64 *spill;  // [2][blocks][SPILL]
};

// A block's parts of two levels' frontiers, the one that is expanded and the one that is found.
template <int BLOCKS>
struct Cohort {
  u64 queue[2][NEAR];
  u32 count[3];  // vertices in the queue of level i mod 3, and HEAVY above them
  Meeting<BLOCKS> meeting;
};

template <class Offset, int WIDTH, int BLOCKS, bool LOCAL>
struct Narrow {
  const Graph<Offset> &graph;
  const Search<Offset, int> &search;
  const Padded &rows;
  Cohort<BLOCKS> &cohort;
  u32 *visited;                // LOCAL: this block's words of the bitmap, every BLOCKS-th
  const Queue<Offset> &aside;  // takes vertices of many edges
  u32 level;                   // of what is found

  // Entries that were followed last, and which of them were found.
  u32 target[4], fresh;

  __device__ u64 *spilled(u32 level, u32 block, u32 index) {
    return rows.spill + ((u64)(level & 1) * BLOCKS + block) * SPILL + index - NEAR;
  }

  __device__ void put(u32 level, u32 index, u64 reached) {
    if (index < NEAR) {
      cohort.queue[level & 1][index] = reached;
    } else {
      *spilled(level, blockIdx.x, index) = reached;
      __threadfence();  // a meeting orders shared memory only
    }
  }

  // (Racecheck takes reading another block's queue, and that block's filling it a level later, for
  // a hazard: it does not see that a meeting lies between.)
  __device__ u64 get(u32 level, u32 block, u32 index) {
    if (index >= NEAR) return __ldcg(spilled(level, block, index));
    const u64 *place = &cohort.queue[level & 1][index];
    return block == blockIdx.x ? *place : read_from<BLOCKS>(place, block);
  }

  // Where `wanted`, marks the vertex visited; gives the word that its bit stood in before, else ALL.
  __device__ u32 mark(bool wanted, u32 vertex) {
    u32 word = vertex >> 5, bit = 1u << (vertex & 31);
    if (LOCAL) return or_where<BLOCKS>(wanted, visited + word / BLOCKS, word % BLOCKS, bit);
    return wanted ? atomicOr(visited + word, bit) : ALL;
  }

  __device__ void write(u64 reached, u32 level) {
    search.distance[VERTEX(reached)] = (int)level;
    search.parent[VERTEX(reached)] = PARENT(reached);
  }

  // Have the rows of what was found last fetched: while the cluster meets, or goes on.
  __device__ void fetch_ahead() {
#pragma unroll
    for (int i = 0; i < 4; i++)
      if (WIDTH) prefetch_where(fresh >> i & 1, rows.padded + (u64)target[i] * WIDTH);
    fresh = 0;
  }

  // Called by whole warps; entries that are NONE or LONGER lead nowhere, the parent nowhere new.
  __device__ void follow(u64 reached, u32 a, u32 b, u32 c, u32 d) {
    fetch_ahead();
    target[0] = a, target[1] = b, target[2] = c, target[3] = d;
    bool mine[4];
    u32 seen[4], before[4], count = 0;
#pragma unroll
    for (int i = 0; i < 4; i++)
      seen[i] = mark(target[i] < LONGER && target[i] != PARENT(reached), target[i]);
#pragma unroll
    for (int i = 0; i < 4; i++) {
      mine[i] = !(seen[i] >> (target[i] & 31) & 1);
      u32 finders = __ballot_sync(ALL, mine[i]);
      before[i] = count + __popc(finders & lanes_before());
      count += __popc(finders);
      if (mine[i]) fresh |= 1u << i;
    }
    if (!count) return;
    u32 base = lane_id() == 0 ? atomicAdd(&cohort.count[level % 3], count) : 0;
    base = __shfl_sync(ALL, base, 0) % HEAVY;
    if (base + count <= NEAR) {  // all of them, as a rule
#pragma unroll
      for (int i = 0; i < 4; i++)
        if (mine[i])
          cohort.queue[level & 1][base + before[i]] = REACHED(target[i], VERTEX(reached));
    } else {
#pragma unroll
      for (int i = 0; i < 4; i++)
        if (mine[i]) put(level, base + before[i], REACHED(target[i], VERTEX(reached)));
    }
  }

  // By their offsets. Rows of many edges are left aside, for the whole device.
  __device__ void follow_rows(bool mine, u64 reached) {
    u32 vertex = VERTEX(reached);
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
      follow(reached, one(at), one(at + 1), one(at + 2), one(at + 3));
  }

  // Called by whole warps: write what some lanes' vertices reached, and follow their rows.
  __device__ void expand(bool mine, u64 reached) {
    if constexpr (WIDTH == 0) {
      if (mine) write(reached, level - 1);
      follow_rows(mine, reached);
    } else {
      const uint4 *row = (const uint4 *)(rows.padded + (u64)VERTEX(reached) * WIDTH);
      uint4 four[WIDTH / 4];
#pragma unroll
      for (int i = 0; i < WIDTH / 4; i++)
        four[i] = mine ? __ldg(row + i) : uint4{NONE, NONE, NONE, NONE};
      if (mine) write(reached, level - 1);  // while the row is on its way
      bool longer = four[WIDTH / 4 - 1].w == LONGER;
      u32 none = longer ? NONE : 0;
#pragma unroll
      for (int i = 0; i < WIDTH / 4; i++)
        follow(reached, four[i].x | none, four[i].y | none, four[i].z | none, four[i].w | none);
      if (__any_sync(ALL, longer)) follow_rows(longer, reached);
    }
  }
};

template <class Offset, int WIDTH, int BLOCKS, bool LOCAL, int THREADS>
__global__ void CLUSTER(BLOCKS) __launch_bounds__(THREADS, 1)
    narrow_search(const __grid_constant__ Graph<Offset> graph,
                  const __grid_constant__ Search<Offset, int> search,
                  const __grid_constant__ Padded rows) {
  __shared__ Cohort<BLOCKS> cohort;
  __shared__ u32 buffers[THREADS / 32][BUFFER];
  extern __shared__ u32 bits[];  // LOCAL: this block's words of the bitmap
  const u32 block = blockIdx.x, thread = threadIdx.x, warp = thread / 32;
  const bool leader = block == 0 && thread == 0;
  Control *control = search.control;
  cohort.meeting.open();
  if (!search.resume) begin(graph, search);
  cluster_sync<BLOCKS>();
  const u32 turn = __ldcg(&control->turn), entered = __ldcg(&control->level);
  const u32 first = __ldcg(&control->frontier);
  const Queue<Offset> &queue = search.queue[turn >> 1], &other = search.queue[turn >> 1 ^ 1];
  u32 *bitmap = search.visited[turn & 1];
  const u32 words = (graph.vertices + STRIP - 1) / STRIP * STRIP_WORDS;
  Narrow<Offset, WIDTH, BLOCKS, LOCAL> narrow = {
      graph, search, rows, cohort, LOCAL ? bits : bitmap, queue, entered, {}, 0};
  const u32 visited_before = __ldcg(&control->visited);
  u32 visited = visited_before - first;  // before the frontier
  u32 level = entered, total;

  // The frontier, dealt out in turn.
  u32 share = first / BLOCKS + (block < first % BLOCKS);
  for (u32 i = thread; i < share; i += THREADS) {
    u32 vertex = __ldcg(queue.vertex + i * BLOCKS + block);
    narrow.put(level, i, REACHED(vertex, __ldcg(search.parent + vertex)));
  }
  for (u32 i = thread; LOCAL && i * BLOCKS + block < words; i += THREADS)
    bits[i] = __ldcg(bitmap + i * BLOCKS + block);
  if (thread < 3) cohort.count[thread] = thread == level % 3 ? share : 0;
  if (leader) control->counters[0] = control->counters[1] = Counters{};
  cluster_sync<BLOCKS>();

  const u32 last_level = min(search.max_level, search.first_level + search.level_capacity);
  u64 clock = clock64();
  cohort.meeting.bring(0, cohort.count[level % 3]);
  for (;; level++) {
    const u32 counted = cohort.meeting.wait(level - entered, lane_id() % BLOCKS);
    const u32 most = warp_max(counted);
    total = warp_sum(lane_id() < BLOCKS ? counted : 0);
    // Nothing, too much, or HEAVY.
    if (total - 1 >= BLOCKS * BLOCK_FRONTIER || level >= last_level) break;
    visited += total;
    if (thread == 0) cohort.count[(level + 2) % 3] = 0;
    narrow.level = level + 1;
    // Queues are dealt out 32 vertices at a time, to a warp of each block in turn, the first ones to
    // their own block.
    for (u32 piece = warp; piece * 32 < most; piece += THREADS / 32) {
      u32 from = (block - piece) % BLOCKS, index = piece * 32 + lane_id();
      u32 count = __shfl_sync(ALL, counted, from);
      bool mine = index < count;
      if (piece * 32 < count) narrow.expand(mine, mine ? narrow.get(level, from, index) : 0);
    }
    cohort.meeting.bring(level + 1 - entered, cohort.count[(level + 1) % 3]);
    narrow.fetch_ahead();
    if (leader) {
      u64 ended = clock64();
      LevelRecord *record = search.levels + (level - search.first_level);
      *record = {0, ended - clock, 0, 0};
      if (level > entered) record[-1].found = total;
      clock = ended;
    }
    __syncwarp();
  }
  const bool partial = total >= HEAVY;
  total %= HEAVY;
  if (leader && level > entered) search.levels[level - 1 - search.first_level].found = total;
  u32 status = DONE;
  if (partial || total > BLOCKS * BLOCK_FRONTIER) status = WIDE;
  else if (total && level < search.max_level) status = MORE;
  if (!partial) visited += total;

  // Put the bits and the queue where the whole device finds them. (A barrier for bits that other
  // blocks have set: meetings order each block's own writes only.)
  cluster_sync<BLOCKS>();
  for (u32 i = thread; LOCAL && i * BLOCKS + block < words; i += THREADS)
    bitmap[i * BLOCKS + block] = bits[i];
  Enqueue<Offset> back = {graph.offsets, other, &control->counters[0].queued,
                          buffers[thread / 32]};
  u32 own = cohort.count[level % 3] % HEAVY;
  for (u32 i = thread - lane_id(); i < own; i += THREADS) {
    bool mine[1] = {i + lane_id() < own};
    u64 reached = mine[0] ? narrow.get(level, block, i + lane_id()) : 0;
    u32 vertex[1] = {VERTEX(reached)};
    if (mine[0]) narrow.write(reached, level);
    back.add(mine, vertex);
  }
  if (back.count) back.flush();
  cluster_sync<BLOCKS>();
  if (status == DONE) settle(search, bitmap, graph.vertices);
  if (!leader) return;
  // Vertices left aside are pushed first, at the level that they belong to.
  u64 queued = __ldcg(&control->counters[partial ? 1 : 0].queued);
  control->partial = partial;
  control->small_levels = 0;
  control->counters[0].found = total;
  control->turn = partial ? turn : turn ^ 2;
  control->level = partial ? level - 1 : level;
  control->visited = visited;
  control->unvisited_edges = (u64)((float)control->unvisited_edges *
                                   (float)(graph.vertices - visited + 1) /
                                   (float)(graph.vertices - visited_before + 1));
  control->found = partial ? 1 : total;  // not 0: there is a level to do
  control->frontier = QUEUED_VERTICES(queued);
  control->forward = QUEUED_EDGES(queued);
  control->queued = 1;
  control->status = status;
}
