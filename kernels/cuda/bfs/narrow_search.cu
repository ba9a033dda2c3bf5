// Breadth-first search through levels that are too small for the whole device: roads, grids,
// chains. One thread-block cluster runs them.
//
// What a level costs is latency, so a level is one barrier of the cluster; the queues, and where they
// fit the bits of visited vertices, lie in its shared memory; a thread knows where to look for its
// vertex before it knows how many there are; a vertex's distance and parent are written while its
// row is on its way, and a found vertex's row is fetched ahead. A level that grows too large, or has
// a vertex of many edges, goes back to wide_search: with `partial`, the queue holds the vertices that
// are left to push at this level.
#include "bfs/cluster.cuh"
#include "bfs/passes.cuh"

#define NEAR 2048            // places of a block's queue in shared memory; more lie in `spill`
#define BLOCK_FRONTIER 2048  // vertices that a block expands in a level, at most
#define LIGHT 32             // edges of a vertex that is not left aside
#define SPILL ((BLOCK_FRONTIER + 256) * LIGHT)  // what a block may find; shares are not quite even
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

// Entries of a padded row.
__device__ inline void read_entries(const u32 *at, u32 (&entry)[1]) { entry[0] = __ldg(at); }

__device__ inline void read_entries(const u32 *at, u32 (&entry)[2]) {
  const uint2 two = __ldg((const uint2 *)at);
  entry[0] = two.x, entry[1] = two.y;
}

__device__ inline void read_entries(const u32 *at, u32 (&entry)[4]) {
  const uint4 four = __ldg((const uint4 *)at);
  entry[0] = four.x, entry[1] = four.y, entry[2] = four.z, entry[3] = four.w;
}

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

  // Called by whole warps; entries that are NONE or LONGER lead nowhere, the parent nowhere new.
  template <int N>
  __device__ void follow(const u32 (&target)[N], u64 reached) {
    u32 seen[N], before[N], found = 0;
    bool mine[N];
#pragma unroll
    for (int i = 0; i < N; i++)
      seen[i] = mark(target[i] < LONGER && target[i] != PARENT(reached), target[i]);
#pragma unroll
    for (int i = 0; i < N; i++) {
      mine[i] = !(seen[i] >> (target[i] & 31) & 1);
      const u32 finders = __ballot_sync(ALL, mine[i]);
      before[i] = found + __popc(finders & lanes_before());
      found += __popc(finders);
    }
    if (!found) return;
    u32 base = lane_id() == 0 ? atomicAdd(&cohort.count[level % 3], found) : 0;
#pragma unroll
    for (int i = 0; i < N; i++)
      if (WIDTH) prefetch_where(mine[i], rows.padded + (u64)target[i] * WIDTH);
    base = __shfl_sync(ALL, base, 0) % HEAVY;
    if (base + found <= NEAR) {  // all of them, as a rule
#pragma unroll
      for (int i = 0; i < N; i++)
        if (mine[i])
          cohort.queue[level & 1][base + before[i]] = REACHED(target[i], VERTEX(reached));
    } else {
#pragma unroll
      for (int i = 0; i < N; i++)
        if (mine[i]) put(level, base + before[i], REACHED(target[i], VERTEX(reached)));
    }
  }

  // Of rows by their offsets, the entries from `skipped` on; a vertex's by LANES lanes. Rows of many
  // edges are left aside, for the whole device.
  template <int LANES>
  __device__ void follow_rows(bool mine, u32 skipped, u64 reached) {
    const u32 vertex = VERTEX(reached), lane = lane_id() % LANES;
    u64 at = mine ? graph.offsets[vertex] : 0, end = mine ? graph.offsets[vertex + 1] : 0;
    if (end - at > LIGHT) {
      if (lane == 0) {
        u64 base = atomicAdd(&search.control->counters[1].queued, QUEUED(1, end - at));
        u32 index = QUEUED_VERTICES(base);
        aside.vertex[index] = vertex;
        aside.row[index] = (Offset)at;
        aside.before[index] = (Offset)QUEUED_EDGES(base);
        __threadfence();
        atomicOr(&cohort.count[level % 3], HEAVY);
      }
      at = end;
    }
    for (at += skipped + lane; __any_sync(ALL, at < end); at += LANES)
      follow({at < end ? entry<true>(graph.targets, at) : NONE}, reached);
  }

  // Called by whole warps, a lane for every EACH entries of a vertex's row: write what it reached, and
  // follow these.
  template <int EACH>
  __device__ void expand(bool mine, u64 reached) {
    constexpr int LANES = WIDTH / EACH;
    const u32 lane = lane_id() % LANES;
    u32 target[EACH];
#pragma unroll
    for (int i = 0; i < EACH; i++)
      target[i] = NONE;
    if (mine) read_entries(rows.padded + (u64)VERTEX(reached) * WIDTH + lane * EACH, target);
    if (mine && lane == 0) write(reached, level - 1);  // while the row is on its way
    follow(target, reached);
    const u32 longer = __ballot_sync(ALL, target[EACH - 1] == LONGER);
    if (!longer) return;
    const u32 last = lane_id() / LANES * LANES + LANES - 1;  // of this vertex's lanes
    follow_rows<LANES>(longer >> last & 1, WIDTH - 1, reached);
  }

  // Expand a level: `counted` vertices in the queue of each lane's block, `most` at most. Queues are
  // dealt out some vertices at a time, LANES lanes for each, to a warp of each block in turn, the first
  // ones to their own block: what blocks tell each other takes longest where one has more to tell.
  template <int LANES, class Expand>
  __device__ void deal(u32 counted, u32 most, Expand expand) {
    constexpr u32 TAKEN = 32 / LANES;
    for (u32 piece = threadIdx.x / 32; piece * TAKEN < most; piece += blockDim.x / 32) {
      const u32 from = (blockIdx.x - piece) % BLOCKS, index = piece * TAKEN + lane_id() / LANES;
      const u32 count = __shfl_sync(ALL, counted, from);
      const bool mine = index < count;
      if (piece * TAKEN < count) expand(mine, mine ? get(level - 1, from, index) : 0);
    }
  }

  // The fewer entries a lane takes, the sooner it is through; the more, the sooner a warp comes to what
  // it takes next.
  __device__ void expand_all(u32 counted, u32 most) {
    if constexpr (WIDTH == 0) {
      deal<4>(counted, most, [&](bool mine, u64 reached) {
        if (mine && lane_id() % 4 == 0) write(reached, level - 1);
        follow_rows<4>(mine, 0, reached);
      });
    } else {
      if (most * WIDTH <= blockDim.x)
        deal<WIDTH>(counted, most, [&](bool mine, u64 reached) { expand<1>(mine, reached); });
      else if (most * WIDTH <= 2 * blockDim.x)
        deal<WIDTH / 2>(counted, most, [&](bool mine, u64 reached) { expand<2>(mine, reached); });
      else
        deal<WIDTH / 4>(counted, most, [&](bool mine, u64 reached) { expand<4>(mine, reached); });
    }
  }
};

template <class Offset, int WIDTH, int BLOCKS, bool LOCAL, int THREADS>
__global__ void CLUSTER(BLOCKS) __launch_bounds__(THREADS, 1)
    narrow_search(const __grid_constant__ Graph<Offset> graph,
                  const __grid_constant__ Search<Offset, int> search,
                  const __grid_constant__ Padded rows) {
  __shared__ Cohort<BLOCKS> cohort;
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
      graph, search, rows, cohort, LOCAL ? bits : bitmap, queue, entered};
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
    narrow.expand_all(counted, most);
    cohort.meeting.bring(level + 1 - entered, cohort.count[(level + 1) % 3]);
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
                          (u32 *)cohort.queue[level + 1 & 1] + warp * BUFFER};
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
