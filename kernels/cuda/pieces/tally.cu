// The operation `tally` on a device: each vertex picks one of its neighbours' labels, by the sums of what its edges
// amount to. A vertex of few edges has them in the registers of some lanes, one of more in a hash table in the shared
// memory of a warp or of a block, one of many in a table in device memory. Sums are whole numbers of 64 bits, and a
// rule picks the same label in any order.
#include "pieces/tables.cuh"

#define WARP_SLOTS 512    // of a warp's table
#define BLOCK_SLOTS 2048  // of a block's; rows of up to half as many edges get one of these

// The rule that prefers the greatest sum, and of several the least label.
struct MostCommon {
  u64 least;  // 0

  __device__ bool operator()(Pick one, Pick other) const {
    return one.total > other.total || (one.total == other.total && one.label < other.label);
  }
};

// The edges that a vertex is told of: in one row, or in two, those that enter and those that leave. gpu_pieces/tally.py
// packs the same structure.
template <class Offset, bool TIERED, class Amounts>
struct Neighbours {
  struct Way {
    const Offset *offsets;
    Targets targets;
    Amounts amounts;
  } ways[2];
  u32 count;

  struct Row {
    u64 begins[2];
    u32 first, length;  // edges of the first way, and of both
  };

  __device__ Row row(u32 vertex) const {
    Row row = {{ways[0].offsets[vertex], 0}, 0, 0};
    row.length = row.first = (u32)(ways[0].offsets[vertex + 1] - row.begins[0]);
    if (count == 2) {
      row.begins[1] = ways[1].offsets[vertex];
      row.length += (u32)(ways[1].offsets[vertex + 1] - row.begins[1]);
    }
    return row;
  }

  // The label at the end of an edge of a row, and what the edge amounts to.
  __device__ Pick told(const Row &row, u32 k, const u32 *x) const {
    const bool other = k >= row.first;
    const Way &way = ways[other];
    const u64 edge = row.begins[other] + (other ? k - row.first : k);
    return {way.amounts.amount(edge), x[entry_once<TIERED>(way.targets, edge)]};
  }
};

// Pick for the vertices in `list`, of no more than `width` edges each: a power of two, at most 32.
template <class Offset, bool TIERED, class Amounts, class Rule>
__global__ void tally_few(const __grid_constant__ Neighbours<Offset, TIERED, Amounts> neighbours, const Rule rule,
                          const u32 *list, u32 count, u32 width, const u32 *x, u32 *y) {
  const u32 lane = lane_id() & (width - 1), first = lane_id() - lane, each = 32 / width;
  FOR_STRIPS(strip, (count + each - 1) / each) {
    const u64 at = strip * each + lane_id() / width;
    const u32 vertex = at < count ? list[at] : NONE;
    Pick own = {0, NONE};
    if (vertex != NONE) {
      const auto row = neighbours.row(vertex);
      if (lane < row.length) own = neighbours.told(row, lane, x);
    }
    u64 total = 0;
    for (u32 k = 0; k < width; k++) {
      const u64 amount = __shfl_sync(ALL, own.total, first + k);
      if (__shfl_sync(ALL, own.label, first + k) == own.label) total += amount;
    }
    own = best_of_lanes(rule, {total, own.label}, width);
    if (vertex != NONE && lane == 0) y[vertex] = own.label;
  }
}

// Pick for a vertex, by a table that is no one else's meanwhile.
template <class Group, class Neighbours, class Rule>
__device__ inline void tally_row(const Group &group, const Table &table, const Neighbours &neighbours,
                                 const typename Neighbours::Row &row, const Rule &rule, const u32 *x, u32 *y) {
  Pick own = {0, NONE};
  auto told = [&](u32 k) { return neighbours.told(row, k, x); };
  sum_by_label(group, table, row.length, told, [&](Pick other) {
    if (rule(other, own)) own = other;
  });
  own = group.best(rule, own);
  if (group.thread() == 0) *y = own.label;
  group.meet();
}

// The same for vertices whose labels fit the table of a warp. Blocks have so many threads.
template <class Offset, bool TIERED, class Amounts, class Rule, int THREADS>
__global__ void tally_some(const __grid_constant__ Neighbours<Offset, TIERED, Amounts> neighbours, const Rule rule,
                           const u32 *list, u32 count, const u32 *x, u32 *y) {
  __shared__ u64 totals[THREADS / 32][WARP_SLOTS];
  __shared__ u32 labels[THREADS / 32][WARP_SLOTS];
  const u32 warp = threadIdx.x / 32;
  FOR_STRIPS(at, count) {
    const auto row = neighbours.row(list[at]);
    tally_row(OneWarp(), Table{labels[warp], totals[warp], bits_of_table(row.length)}, neighbours, row, rule, x, y + list[at]);
  }
}

// The same for vertices that a block takes each, with a table in its own memory, or in device memory, where each block
// has 2^most_bits slots.
template <class Offset, bool TIERED, class Amounts, class Rule>
__global__ void tally_many(const __grid_constant__ Neighbours<Offset, TIERED, Amounts> neighbours, const Rule rule,
                           const u32 *list, u32 count, u32 most_bits, u32 *far_labels, u64 *far_totals, const u32 *x,
                           u32 *y) {
  __shared__ u64 totals[BLOCK_SLOTS];
  __shared__ u32 labels[BLOCK_SLOTS];
  const u64 far = (u64)blockIdx.x << most_bits;
  for (u32 at = blockIdx.x; at < count; at += gridDim.x) {
    const auto row = neighbours.row(list[at]);
    const bool fits = 2 * row.length <= BLOCK_SLOTS;
    const u32 bits = fits ? bits_of_table(row.length) : min(bits_of_table(row.length), most_bits);
    const Table table = fits ? Table{labels, totals, bits} : Table{far_labels + far, far_totals + far, bits};
    tally_row(OneBlock(), table, neighbours, row, rule, x, y + list[at]);
  }
}
