// How rows are put in order by tiles (walks/tiles.cuh): what each unit costs, so that bands of them cost the
// same; how many segments each group has; then where each one stands.
#include "walks/tiles.cuh"

// tiles, of 2^shift vertices, from the first vertex on, then columns, of 2^column_shift vertices.
// gpu_programs/tiles.py packs the same structure.
struct Tiling {
  u32 tiles, shift, columns, column_shift;

  __device__ u32 cell(u32 vertex) const {
    const u32 first = tiles << shift;
    return vertex < first ? vertex >> shift : tiles + ((vertex - first) >> column_shift);
  }
  __device__ u32 cells() const { return tiles + columns; }
};

// What it takes, in tenths of a clock of a multiprocessor, about (an H200): an entry, and a segment, of a tile
// and of a column; what is made of a row's sum.
#define NEAR_ENTRY 3
#define NEAR_SEGMENT 5
#define FAR_ENTRY 10
#define FAR_SEGMENT 8
#define A_ROW 20

// The first group that takes segments of so many entries.
__device__ inline u32 group_of(u32 entries) {
  if (entries <= 2) return entries - 1;
  const u32 below = 31 - __clz(entries - 1);  // 2^below < entries <= 2 * 2^below
  return below == 1 ? 2 : 2 * below - (2 * entries <= 3u << below);
}

// rises: whether the segment before, of the same piece, is of an earlier cell.
struct Segment {
  u32 piece, cell;
  u64 begin, end;
  bool rises;
};

// Call `found(segment)` with each one of a unit, which gives two numbers, then, where asked for EACH, `each(
// numbers, i, e, target)` with these, and each of its entries: its i-th, which is entry e. Called by whole warps.
template <bool EACH, class Offset, class Found, class Each>
__device__ inline void visit_segments(const Rows<Offset> &rows, const Tiling &tiling, u32 unit, Found found,
                                      Each each) {
  const u32 *const targets = rows.targets.near;
  visit_unit(rows, unit, [&](u32 piece, Entries some, u32 lane, u32 width) {
    const u32 group = lane_id() - lane, last = group + width - 1;  // lanes that share the piece
    const u32 steps = warp_max((u32)((some.count() + width - 1) / width));
    uint2 numbers = {0, 0};
    u32 begun = 0, cell_before = NONE, ahead = some.begin + lane < some.end ? targets[some.begin + lane] : 0;
    for (u32 step = 0; step < steps; step++) {
      const u64 e = some.begin + (u64)step * width + lane, next = e - lane + width;
      const bool any = e < some.end;
      const u32 target = ahead, cell = any ? tiling.cell(target) : NONE;
      if (e + width < some.end) ahead = targets[e + width];  // on its way while this step is done
      u32 before = __shfl_up_sync(ALL, cell, 1);
      if (lane == 0) before = cell_before;
      const bool first = any && cell != before;
      const u32 firsts = __ballot_sync(ALL, first) >> group & (ALL >> (32 - width));
      const u32 until = firsts & (ALL >> (31 - lane)), later = firsts ^ until;
      if (first) {
        u64 end = later ? e - lane + __ffs(later) - 1 : min(next, some.end);
        if (!later)  // it may be longer: the first entry beyond its cell
          for (u64 high = some.end; end < high;) {
            const u64 middle = end + (high - end) / 2;
            if (tiling.cell(targets[middle]) == cell)
              end = middle + 1;
            else
              high = middle;
          }
        numbers = found(Segment{piece, cell, e, end, before == NONE || before < cell});
        begun = (u32)(e - some.begin);
      }
      cell_before = __shfl_sync(ALL, cell, last);
      if (!EACH) continue;
      // The last lane that has found a segment, up to this one, says which one its entry is of.
      const u32 who = until ? group + 31 - __clz(until) : lane_id();
      numbers = {__shfl_sync(ALL, numbers.x, who), __shfl_sync(ALL, numbers.y, who)};
      begun = __shfl_sync(ALL, begun, who);
      if (any) each(numbers, (u32)(e - some.begin) - begun, e, target);
      numbers = {__shfl_sync(ALL, numbers.x, last), __shfl_sync(ALL, numbers.y, last)};
      begun = __shfl_sync(ALL, begun, last);
    }
  });
}

// costs: of one unit of each `apart` that follow each other, which stands for them; which one, a hash says. (What a
// row takes beyond a turn leaves turns empty, so every second unit, say, may cost a lot, and the others nothing.)
template <class Offset>
__global__ void weigh_units(const __grid_constant__ Rows<Offset> rows, const Tiling tiling, u32 apart,
                            u32 *costs) {
  FOR_STRIPS(sample, (rows.parts + rows.turns + apart - 1) / apart) {
    const u32 chosen = ((u32)sample * 0x9E3779B9u >> 16) * apart >> 16;
    const u32 unit = min((u32)sample * apart + chosen, rows.parts + rows.turns - 1), turn = unit - rows.parts;
    const bool whole = unit >= rows.parts && lane_id() == 0;
    u32 cost = whole ? A_ROW * (rows.turn_rows[turn + 1] - rows.turn_rows[turn]) : 0;
    auto found = [&](const Segment &segment) {
      const bool tile = segment.cell < tiling.tiles;
      const u32 entries = (u32)(segment.end - segment.begin);
      cost += tile ? NEAR_SEGMENT + NEAR_ENTRY * entries : FAR_SEGMENT + FAR_ENTRY * entries;
      return uint2{0, 0};
    };
    visit_segments<false>(rows, tiling, unit, found, [](uint2, u32, u64, u32) {});
    cost = warp_sum(cost);
    if (lane_id() == 0) costs[sample] = cost;
  }
}

// first: of each band its first unit, and an end.
struct Bands {
  const u32 *first;
  u32 count;
};

// Visit the segments of a band, which is the block's, from the first piece to the last: call `found(segment,
// group, place)` and `each` as of visit_segments. counters: the block's, of each of the band's groups, which
// say how many segments it has had: a place for each.
template <bool EACH, class Offset, class Found, class Each>
__device__ inline void visit_band(const Rows<Offset> &rows, const Tiling &tiling, const Bands &bands, u32 band,
                                  u32 *counters, Found found, Each each) {
  const Crew crew = own_block();
  for (u32 i = threadIdx.x; i < tiling.cells() * GROUPS; i += blockDim.x) counters[i] = 0;
  __syncthreads();
  auto in_group = [&](const Segment &segment) {
    const u32 group = segment.cell * GROUPS + group_of((u32)(segment.end - segment.begin));
    return found(segment, group, atomicAdd(counters + group, 1u));
  };
  for (u32 unit = bands.first[band] + crew.warp; unit < bands.first[band + 1]; unit += crew.warps)
    visit_segments<EACH>(rows, tiling, unit, in_group, each);
  __syncthreads();
}

// counts: of segments of each group of each band. unsorted: set where the cells of a row fall, and nothing is to
// be made of it. Called with shared memory for a band's counters.
template <class Offset>
__global__ void __launch_bounds__(1024)
    count_segments(const __grid_constant__ Rows<Offset> rows, const Tiling tiling, const Bands bands,
                   u32 *counts, u32 *unsorted) {
  extern __shared__ u32 counters[];
  const u32 groups = tiling.cells() * GROUPS;
  auto found = [&](const Segment &segment, u32, u32) {
    if (!segment.rises) *unsorted = 1;
    return uint2{0, 0};
  };
  for (u32 band = blockIdx.x; band < bands.count; band += gridDim.x) {
    visit_band<false>(rows, tiling, bands, band, counters, found, [](uint2, u32, u64, u32) {});
    for (u32 i = threadIdx.x; i < groups; i += blockDim.x) counts[(u64)band * groups + i] = counters[i];
    __syncthreads();
  }
}

// Put each segment where there is a place in its group. (Which one is anybody's: sums are the same.) Weights,
// by entry, become moved_weights, as entries are counted here; or null. Called with shared memory as above.
template <class Offset>
__global__ void __launch_bounds__(1024)
    place_segments(const __grid_constant__ Rows<Offset> rows, const Tiling tiling, const Bands bands,
                   const Group *groups, const u32 *weights, u16 *near, u32 *far, u32 *pieces, u64 near_end,
                   u32 *moved_weights) {
  extern __shared__ u32 counters[];
  for (u32 band = blockIdx.x; band < bands.count; band += gridDim.x) {
    const Group *const own = groups + (u64)band * tiling.cells() * GROUPS;
    auto found = [&](const Segment &segment, u32 group, u32 place) {
      pieces[own[group].segments + place] = segment.piece;
      return uint2{group, place};
    };
    visit_band<true>(rows, tiling, bands, band, counters, found, [&](uint2 numbers, u32 i, u64 e, u32 target) {
      const u32 of = numbers.x % GROUPS, shift = lanes_shift(of), length = longest(of) >> shift;
      const u32 lanes = numbers.y << shift, lane = (lanes & 31) + (i & ((1u << shift) - 1)), turn = i >> shift;
      const u32 within = length == 1 ? lane : 32 * (turn & ~1u) + 2 * lane + (turn & 1);
      const u64 to = own[numbers.x].entries + (u64)(lanes >> 5) * 32 * length + within;
      const bool tile = numbers.x / GROUPS < tiling.tiles;
      if (tile)
        near[to] = (u16)(target & ((1u << tiling.shift) - 1));
      else
        far[to] = target;
      if (weights) moved_weights[tile ? to : near_end + to] = weights[e];
    });
  }
}
