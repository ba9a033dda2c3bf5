// Communities on a device: vertices move in rounds, and the graph between communities is listed. The definition of both
// is kernels/programs/communities.py's, and so are the answers, bit for bit: sums are whole numbers, and a gain is one
// fixed expression of floats. A vertex of few edges has its neighbours' labels in the registers of some lanes, one of
// more in a table in shared memory of a warp or of a block, one of many in a table in device memory (as in Sahu:
// Memory-Efficient Community Detection on Large Graphs Using Weighted Sketches, 2024, and pieces/tally.cu).
#include "pieces/tables.cuh"
#include "programs/forest.cuh"

#define CLASSES 8
#define WIDEST 32          // edges of a vertex that has them in registers, at most
#define WARP_SLOTS 256     // of a warp's table; rows of up to half as many edges get one of these
#define BLOCK_SLOTS 2048   // of a block's
#define WARPS (BLOCK_SLOTS / WARP_SLOTS)
#define SOME_EDGES (1u << 14)  // rows of more get the largest tables

// Kinds of rows, by their lengths: those of up to 4, 8, 16 and 32 edges, then those with tables.
enum { FEW = 0, OF_WARP = 4, OF_BLOCK, FAR, FARTHER, KINDS };

__device__ inline u32 kind_of(u64 length) {
  if (length <= WIDEST) return length <= 4 ? FEW : length <= 8 ? FEW + 1 : length <= 16 ? FEW + 2 : FEW + 3;
  return length <= WARP_SLOTS / 2 ? OF_WARP : length <= BLOCK_SLOTS / 2 ? OF_BLOCK : length <= SOME_EDGES ? FAR : FARTHER;
}

// The class of a vertex in a round: MurmurHash3's finalizer (Appleby).
__device__ inline u32 class_of(u32 number, u64 stamp) {
  u64 hashed = number + stamp;
  hashed ^= hashed >> 33;
  hashed *= 0xFF51AFD7ED558CCDull;
  hashed ^= hashed >> 33;
  hashed *= 0xC4CEB9FE1A85EC53ull;
  return hashed >> 61;
}

// Tables in device memory, of 2^bits slots each.
struct FarTables {
  u32 *labels;
  u64 *totals;
  u32 bits;
  u32 count;
};

// What vertices that are places have, or labels, which are numbers. gpu_pieces/communities.py packs the same
// structure, and describes its fields.
struct Level {
  const u32 *numbers;
  const u64 *mass;
  u64 *totals;
  u32 *label;
  const u32 *community;
  u8 *marks;
  u8 *alone;
  u8 *classes;
  u32 *listed;
  u32 *picks;
  u32 *counts;
  u64 *done;
  u64 *arrived;
  FarTables far[2];
  double factor;
  u32 vertices;

  __device__ u32 number(u32 place) const { return numbers ? numbers[place] : place; }
};

template <class Offset, bool TIERED, class Amounts>
struct Graph {
  const Offset *offsets;
  Targets targets;
  Amounts amounts;

  __device__ u64 begin(u32 place) const { return offsets[place]; }
  __device__ u32 length(u32 place) const { return (u32)(offsets[place + 1] - offsets[place]); }
  __device__ u32 target(u64 edge) const { return entry_once<TIERED>(targets, edge); }
};

// Floats by rising value, as words. There is no -0 among them.
__device__ inline u64 word_of(double value) {
  const u64 bits = __double_as_longlong(value);
  return bits >> 63 ? ~bits : bits | 1ull << 63;
}

// A sum, which is below 2^63.
__device__ inline double float_of(u64 total) { return (double)(long long)total; }

// The greater gain; of several that of staying (NONE), else the least label.
struct MoreGain {
  __device__ bool operator()(Pick one, Pick other) const {
    return one.total > other.total || (one.total == other.total && one.label + 1 < other.label + 1);
  }
};

// What a vertex knows when it picks a community, or a part of its own one (JOINS), as BestGain of
// kernels/pieces/operators.py has it.
template <bool JOINS>
struct Picker {
  u32 mine, community, turn;
  double expected, stays;

  __device__ Picker(const Level &level, u32 place, u32 turn) : turn(turn) {
    const u64 mass = level.mass[place];
    mine = level.label[place];
    community = JOINS ? level.community[place] : 0;
    expected = __dmul_rn(float_of(mass), level.factor);
    stays = __dmul_rn(expected, float_of(level.totals[mine] - mass));
  }

  // Whether edges to a vertex count.
  __device__ bool follows(const Level &level, u32 target) const {
    return !JOINS || level.community[target] == community;
  }

  __device__ Pick staying(u64 total = 0) const { return {word_of(__dsub_rn(float_of(total), stays)), NONE}; }

  // What a label is worth by the sum of the edges to it. A vertex that may join at the same time is no part to join.
  __device__ Pick worth(const Level &level, Pick told) const {
    if (told.label == mine) return staying(told.total);
    if (JOINS && level.alone[told.label] && level.classes[told.label] == turn) return {0, NONE};
    const double others = __dmul_rn(expected, float_of(level.totals[told.label]));
    return {word_of(__dsub_rn(float_of(told.total), others)), told.label};
  }
};

// Each lane has an edge at most of a row of `width` of them: the sums of its label, once for each label.
__device__ inline Pick sum_of_lanes(Pick own, u32 width) {
  const u32 lane = lane_id() & (width - 1), first = lane_id() - lane;
  u64 total = 0;
  bool is_first = own.label != NONE;
  for (u32 k = 0; k < width; k++) {
    const u64 amount = __shfl_sync(ALL, own.total, first + k);
    const bool same = __shfl_sync(ALL, own.label, first + k) == own.label;
    if (same) total += amount;
    if (same && k < lane) is_first = false;
  }
  return {total, is_first ? own.label : NONE};
}

template <bool JOINS, class Graph>
__device__ inline Pick told_by(const Graph &graph, const Level &level, const Picker<JOINS> &picker, u64 edge) {
  const u32 target = graph.target(edge);
  if (!picker.follows(level, target)) return {0, NONE};
  return {graph.amounts.amount(edge), level.label[target]};
}

// Pick for the listed vertices from `begin` to `end`, of at most `width` edges each. A vertex that may not join any
// more picks nothing.
template <bool JOINS, class Graph>
__device__ inline void pick_few(const Graph &graph, const Level &level, u32 turn, u32 begin, u32 end, u32 width) {
  const u32 lane = lane_id() & (width - 1), each = 32 / width;
  FOR_STRIPS(strip, (end - begin + each - 1) / each) {
    const u64 at = begin + strip * each + lane_id() / width;
    const u32 place = at < end ? level.listed[at] : NONE;
    const bool picks = place != NONE && (!JOINS || level.alone[level.number(place)]);
    const Picker<JOINS> picker(level, picks ? place : 0, turn);
    Pick own = {0, NONE};
    if (picks && lane < graph.length(place)) own = told_by(graph, level, picker, graph.begin(place) + lane);
    own = sum_of_lanes(own, width);
    Pick best = picker.staying();
    if (own.label != NONE)
      if (const Pick other = picker.worth(level, own); MoreGain()(other, best)) best = other;
    best = best_of_lanes(MoreGain(), best, width);
    if (place == NONE || lane) continue;
    level.picks[at] = picks ? best.label : NONE;
    if (!JOINS) level.marks[place] = 0;
  }
}

// Pick for a listed vertex by a table.
template <bool JOINS, class Group, class Graph>
__device__ inline void pick_by_table(const Group &group, const Table &table, const Graph &graph, const Level &level,
                                     u32 turn, u32 at) {
  const u32 place = level.listed[at];
  u32 picked = NONE;
  if (!JOINS || level.alone[level.number(place)]) {
    const Picker<JOINS> picker(level, place, turn);
    const u64 begin = graph.begin(place);
    Pick best = picker.staying();
    auto told = [&](u32 k) { return told_by(graph, level, picker, begin + k); };
    sum_by_label(group, table, graph.length(place), told, [&](Pick sum) {
      if (const Pick other = picker.worth(level, sum); MoreGain()(other, best)) best = other;
    });
    picked = group.best(MoreGain(), best).label;
  }
  if (group.thread() == 0) {
    level.picks[at] = picked;
    if (!JOINS) level.marks[place] = 0;
  }
  group.meet();
}

// bounds: of the kinds of a class, in `listed`.
template <bool JOINS, class Graph>
__device__ inline void pick_class(const Graph &graph, const Level &level, u32 turn, const u32 *bounds) {
  __shared__ u64 totals[BLOCK_SLOTS];
  __shared__ u32 labels[BLOCK_SLOTS];
  for (u32 far = 2; far--;) {
    const FarTables &tables = level.far[far];
    if (blockIdx.x >= tables.count) continue;
    const u64 own = (u64)blockIdx.x << tables.bits;
    for (u32 at = bounds[FAR + far] + blockIdx.x; at < bounds[FAR + far + 1]; at += tables.count) {
      const u32 bits = min(bits_of_table(graph.length(level.listed[at])), tables.bits);
      const Table table = {tables.labels + own, tables.totals + own, bits};
      pick_by_table<JOINS>(OneBlock(), table, graph, level, turn, at);
    }
  }
  for (u32 at = bounds[OF_BLOCK] + blockIdx.x; at < bounds[FAR]; at += gridDim.x) {
    const Table table = {labels, totals, bits_of_table(graph.length(level.listed[at]))};
    pick_by_table<JOINS>(OneBlock(), table, graph, level, turn, at);
  }
  const u32 warp = threadIdx.x / 32;
  FOR_STRIPS(i, bounds[OF_BLOCK] - bounds[OF_WARP]) {
    const u32 at = bounds[OF_WARP] + i, bits = bits_of_table(graph.length(level.listed[at]));
    const Table table = {labels + warp * WARP_SLOTS, totals + warp * WARP_SLOTS, bits};
    pick_by_table<JOINS>(OneWarp(), table, graph, level, turn, at);
  }
  for (u32 kind = OF_WARP; kind--;)
    pick_few<JOINS>(graph, level, turn, bounds[kind], bounds[kind + 1], 4u << kind);
}

template <class Graph>
__device__ inline void mark_neighbours(const Graph &graph, const Level &level, u32 place, u32 first, u32 apart) {
  const u64 end = graph.begin(place + 1);
  for (u64 edge = graph.begin(place) + first; edge < end; edge += apart) level.marks[graph.target(edge)] = 1;
}

// Move the vertices of a class that have picked a label. Moves have their neighbours marked. Returns how many of this
// thread's vertices have moved; edges: of these.
template <bool JOINS, class Graph>
__device__ inline u32 apply_picks(const Graph &graph, const Level &level, const u32 *bounds, u64 *edges) {
  u32 moved = 0;
  FOR_STRIPS(strip, (bounds[KINDS] - bounds[0] + 31) / 32) {
    const u64 at = bounds[0] + 32 * strip + lane_id();
    const u32 place = at < bounds[KINDS] ? level.listed[at] : NONE, pick = place == NONE ? NONE : level.picks[at];
    if (pick != NONE) {
      atomicAdd(level.totals + level.label[place], 0 - level.mass[place]);
      atomicAdd(level.totals + pick, level.mass[place]);
      level.label[place] = pick;
      if (JOINS) level.alone[level.number(place)] = level.alone[pick] = 0;
      if (!JOINS) *edges += graph.length(place);
      moved++;
    }
    if (JOINS) continue;
    for (u32 who = __ballot_sync(ALL, pick != NONE && at < bounds[OF_BLOCK]); who; who &= who - 1)
      mark_neighbours(graph, level, __shfl_sync(ALL, place, __ffs(who) - 1), lane_id(), 32);
  }
  for (u32 at = bounds[OF_BLOCK] + blockIdx.x; !JOINS && at < bounds[KINDS]; at += gridDim.x)
    if (level.picks[at] != NONE) mark_neighbours(graph, level, level.listed[at], threadIdx.x, blockDim.x);
  return moved;
}

// List the vertices that are marked, or that are alone (JOINS), by class and kind. bounds: receives the bounds of the
// lists. Returns the number of edges of those that this thread has listed.
template <bool JOINS, class Graph>
__device__ inline u64 list_vertices(const Graph &graph, const Level &level, u64 stamp, u32 *bounds) {
  __shared__ u32 here[CLASSES * KINDS];
  u64 edges = 0;
  for (u32 i = threadIdx.x; i < CLASSES * KINDS; i += blockDim.x) here[i] = 0;
  __syncthreads();
  FOR_ITEMS(place, level.vertices) {
    const u32 number = level.number(place);
    const bool chosen = JOINS ? level.alone[number] : level.marks[place];
    const u32 turn = class_of(number, stamp);
    if (JOINS) level.classes[number] = chosen ? turn : CLASSES;
    if (chosen) atomicAdd(here + turn * KINDS + kind_of(graph.length(place)), 1u);
  }
  __syncthreads();
  u32 *counts = level.counts, *begun = level.counts + CLASSES * KINDS;
  for (u32 i = threadIdx.x; i < CLASSES * KINDS; i += blockDim.x)
    if (here[i]) atomicAdd(counts + i, here[i]);
  grid_barrier(level.arrived);
  if (threadIdx.x == 0) {
    bounds[0] = 0;
    for (u32 i = 0; i < CLASSES * KINDS; i++) bounds[i + 1] = bounds[i] + __ldcg(counts + i);
  }
  __syncthreads();
  for (u32 i = threadIdx.x; i < CLASSES * KINDS; i += blockDim.x)
    if (here[i]) here[i] = bounds[i] + atomicAdd(begun + i, here[i]);
  __syncthreads();
  FOR_ITEMS(place, level.vertices) {
    const u32 number = level.number(place);
    if (!(JOINS ? level.alone[number] : level.marks[place])) continue;
    const u32 length = graph.length(place);
    level.listed[atomicAdd(here + class_of(number, stamp) * KINDS + kind_of(length), 1u)] = place;
    edges += length;
  }
  grid_barrier(level.arrived);
  return edges;
}

// Do a round: the classes of the vertices that are marked, or alone, take turns. All vertices of a class pick at once.
// done: receives the number of moves, and of the edges that were looked at, beside what is there.
template <class Offset, bool TIERED, class Amounts, bool JOINS, int THREADS, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS)
    do_round(const __grid_constant__ Graph<Offset, TIERED, Amounts> graph, const __grid_constant__ Level level,
             u64 stamp) {
  __shared__ u32 bounds[CLASSES * KINDS + 1];
  u64 edges = list_vertices<JOINS>(graph, level, stamp, bounds);
  u32 moved = 0;
  for (u32 turn = 0; turn < CLASSES; turn++) {
    const u32 *of_class = bounds + turn * KINDS;
    if (of_class[0] == of_class[KINDS]) continue;
    pick_class<JOINS>(graph, level, turn, of_class);
    grid_barrier(level.arrived);
    moved += apply_picks<JOINS>(graph, level, of_class, &edges);
    grid_barrier(level.arrived);
  }
  FOR_ITEMS(i, 2 * CLASSES * KINDS) level.counts[i] = 0;
  const u64 all_edges = __shfl_sync(ALL, warp_scan(edges), 31), all_moved = warp_sum(moved);
  if (lane_id()) return;
  if (all_moved) atomicAdd(level.done, all_moved);
  if (all_edges) atomicAdd(level.done + 1, all_edges);
}

// Add up, for each vertex, its edges to vertices with the same label. sums: zeros at first.
template <class Offset, bool TIERED, class Amounts, int THREADS, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS)
    sum_within(const __grid_constant__ Rows<Offset> rows, const Amounts amounts, const u32 *label, u64 *sums) {
  visit_rows(rows, whole_grid(), [&](u32 row, Entries whole, Entries some, u32 lane, u32 width) {
    u64 came = 0;
    const u32 own = row == NONE || !label ? 0 : label[row];
    for (u64 e = some.begin + lane; e < some.end; e += width)
      if (!label || label[entry_once<TIERED>(rows.targets, e)] == own) came += amounts.amount(e);
    for (u32 step = width / 2; step; step /= 2) came += __shfl_xor_sync(ALL, came, step);
    if (row == NONE || lane || !came) return;
    if (some.count() == whole.count())
      sums[row] = came;
    else
      atomicAdd(sums + row, came);
  });
}

// Decide which vertices are tied to their communities (Level.begin_joining of pipeline/algorithms/levels.py). within:
// by place. alone: by number, receives 1 or 0.
__global__ void find_tied(const __grid_constant__ Level level, const u64 *within) {
  FOR_ITEMS(place, level.vertices) {
    const u64 mass = level.mass[place], inside = within[place];
    const double others = float_of(level.totals[level.label[place]] - mass);
    const double expected = __dmul_rn(__dmul_rn(float_of(mass), level.factor), others);
    level.alone[level.number(place)] = inside && float_of(inside) >= expected;
  }
}

// Join the ends of the edges inside communities. forest: of each place its own number at first.
template <class Offset, bool TIERED, int THREADS, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS)
    join_within(const __grid_constant__ Rows<Offset> rows, const u32 *label, u32 *forest, u64 *arrived) {
  visit_rows(rows, whole_grid(), [&](u32 row, Entries, Entries some, u32 lane, u32 width) {
    if (row == NONE) return;
    for (u64 e = some.begin + lane; e < some.end; e += width) {
      const u32 target = entry<TIERED>(rows.targets, e);
      if (target < row && label[target] == label[row]) join(forest, row, target, Pairs{});
    }
  });
  grid_barrier(arrived);
  flatten(forest, rows.rows);
}

// List the edges between labels, those of the entries from `begin` to `end` of all rows, in the order of `members`:
// places. starts: where the row of each begins. pairs: receives the labels of both ends, amounts what an edge amounts
// to; listed: how many there are.
template <class Offset, bool TIERED, class Amounts>
__global__ void list_pairs(const __grid_constant__ Graph<Offset, TIERED, Amounts> graph, const u32 *label,
                           const u32 *members, const u64 *starts, u32 count, u64 begin, u64 end, u64 *pairs,
                           u64 *amounts, u64 *listed) {
  FOR_STRIPS(strip, (end - begin + LONG_STRIP - 1) / LONG_STRIP) {
    const u64 first = begin + strip * LONG_STRIP, last = min(first + LONG_STRIP, end);
    u32 at = row_of(starts, 0, count, first);
    for (u64 base = first; base < last; base += 32) {
      const u64 entry = base + lane_id();
      u64 pair = 0, edge = 0;
      bool wanted = false;
      if (entry < last) {
        at = starts[at + 1] > entry ? at : row_of(starts, at, count, entry);
        const u32 place = members[at];
        edge = graph.begin(place) + (entry - starts[at]);
        const u32 one = label[place], other = label[graph.target(edge)];
        wanted = one != other;
        pair = (u64)one << 32 | other;
      }
      const u32 who = __ballot_sync(ALL, wanted);
      u64 into = 0;
      if (lane_id() == 0 && who) into = atomicAdd(listed, (u64)__popc(who));
      into = __shfl_sync(ALL, into, 0) + __popc(who & lanes_before());
      if (!wanted) continue;
      pairs[into] = pair;
      amounts[into] = graph.amounts.amount(edge);
    }
  }
}
