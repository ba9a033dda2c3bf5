// How rows are put in order by tiles (programs/tiles.cuh): what each unit costs, so that bands of them cost the
// same; how many segments each group has; then where each one stands.
#include "programs/tiles.cuh"

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

// What it takes to add up, about, measured on an H200: an entry of a tile, one of a column, a segment.
#define NEAR_ENTRY 3
#define FAR_ENTRY 10
#define A_SEGMENT 5

__device__ inline u32 group_of(u64 entries) {
  u32 group = 0;
  while (longest(group) < entries) group++;
  return group;
}

// rises: whether the entry before, of the same piece, is of an earlier cell.
struct Segment {
  u32 piece, cell;
  u64 begin, end;
  bool rises;
};

// Call `found(segment)` with each one of a unit, which gives two numbers, then `each(numbers, i, e)` with these,
// and each of its entries: its i-th, which is entry e. Called by whole warps.
template <class Offset, class Found, class Each>
__device__ inline void visit_segments(const Rows<Offset> &rows, const Tiling &tiling, u32 unit, Found found,
                                      Each each) {
  const u32 *const targets = rows.targets.near;
  visit_unit(rows, unit, [&](u32 piece, Entries some, u32 lane, u32 width) {
    const u32 steps = warp_max((u32)((some.count() + width - 1) / width)), group = lane_id() - lane;
    uint2 numbers = {0, 0};
    u32 begun = 0;
    for (u32 step = 0; step < steps; step++) {
      const u64 e = some.begin + (u64)step * width + lane;
      const bool any = e < some.end;
      const u32 target = any ? targets[e] : 0, cell = tiling.cell(target);
      const u32 before = any && e > some.begin ? tiling.cell(targets[e - 1]) : cell;
      const bool first = any && (e == some.begin || before != cell);
      if (first) {
        u64 low = e + 1, high = some.end;  // the first entry beyond the cell lies between
        while (low < high) {
          const u64 middle = low + (high - low) / 2;
          if (tiling.cell(targets[middle]) == cell)
            low = middle + 1;
          else
            high = middle;
        }
        numbers = found(Segment{piece, cell, e, low, before <= cell});
        begun = (u32)(e - some.begin);
      }
      // Of the lanes that share the piece, the last one so far that has found a segment says which it is.
      const u32 firsts = __ballot_sync(ALL, first) >> group & (ALL >> (31 - lane));
      const u32 who = firsts ? group + 31 - __clz(firsts) : lane_id();
      numbers = {__shfl_sync(ALL, numbers.x, who), __shfl_sync(ALL, numbers.y, who)};
      begun = __shfl_sync(ALL, begun, who);
      if (any) each(numbers, (u32)(e - some.begin) - begun, e);
      const u32 last = group + width - 1;  // knows what the next step begins with
      numbers = {__shfl_sync(ALL, numbers.x, last), __shfl_sync(ALL, numbers.y, last)};
      begun = __shfl_sync(ALL, begun, last);
    }
  });
}

// costs: of each unit. unsorted: set where the cells of a row fall, and nothing is to be made of it.
template <class Offset>
__global__ void weigh_units(const __grid_constant__ Rows<Offset> rows, const Tiling tiling, u32 *costs,
                            u32 *unsorted) {
  FOR_STRIPS(unit, rows.parts + rows.turns) {
    u32 cost = 0;
    auto found = [&](const Segment &segment) {
      const u32 each = segment.cell < tiling.tiles ? NEAR_ENTRY : FAR_ENTRY;
      cost += A_SEGMENT + each * (u32)(segment.end - segment.begin);
      if (!segment.rises) *unsorted = 1;
      return uint2{0, 0};
    };
    visit_segments(rows, tiling, (u32)unit, found, [](uint2, u32, u64) {});
    cost = warp_sum(cost);
    if (lane_id() == 0) costs[unit] = cost;
  }
}

// first: of each band its first unit, and an end.
struct Bands {
  const u32 *first;
  u32 count;
};

// Call `found(segment, group)` and `each` as of visit_segments, band by band, which a block has each, so that
// what comes later in a group is mostly of a later piece, too.
template <class Offset, class Found, class Each>
__device__ inline void visit_bands(const Rows<Offset> &rows, const Tiling &tiling, const Bands &bands,
                                   Found found, Each each) {
  const Crew crew = own_block();
  for (u32 band = blockIdx.x; band < bands.count; band += gridDim.x) {
    auto in_group = [&](const Segment &segment) {
      const u32 cell = band * tiling.cells() + segment.cell;
      return found(segment, cell * GROUPS + group_of(segment.end - segment.begin));
    };
    for (u32 unit = bands.first[band] + crew.warp; unit < bands.first[band + 1]; unit += crew.warps)
      visit_segments(rows, tiling, unit, in_group, each);
  }
}

// counts: of segments of each group, 0 before.
template <class Offset>
__global__ void __launch_bounds__(1024)
    count_segments(const __grid_constant__ Rows<Offset> rows, const Tiling tiling, const Bands bands,
                   u32 *counts) {
  auto found = [&](const Segment &, u32 group) {
    atomicAdd(counts + group, 1u);
    return uint2{0, 0};
  };
  visit_bands(rows, tiling, bands, found, [](uint2, u32, u64) {});
}

// Put each segment where there is a place in its group. (Which one is anybody's: sums are the same.) placed:
// of each group, 0 before. weights: by entry, and moved_weights, as entries are counted here; or null.
template <class Offset>
__global__ void __launch_bounds__(1024)
    place_segments(const __grid_constant__ Rows<Offset> rows, const Tiling tiling, const Bands bands,
                   const Group *groups, u32 *placed, const u32 *weights, u16 *near, u32 *far, u32 *pieces,
                   u64 near_end, u32 *moved_weights) {
  auto found = [&](const Segment &segment, u32 group) {
    const u32 place = atomicAdd(placed + group, 1u);
    pieces[groups[group].segments + place] = segment.piece;
    return uint2{group, place};
  };
  visit_bands(rows, tiling, bands, found, [&](uint2 numbers, u32 i, u64 e) {
    const u32 target = rows.targets.near[e];
    const u32 of = numbers.x % GROUPS, cell = numbers.x / GROUPS % tiling.cells(), width = lanes_of(of);
    const u32 length = longest(of) / width, chunk = numbers.y / (32 / width);
    const u32 lane = numbers.y % (32 / width) * width + i % width, turn = i / width;
    const u32 within = length == 1 ? lane : 32 * (turn & ~1u) + 2 * lane + (turn & 1);
    const u64 to = groups[numbers.x].entries + (u64)chunk * 32 * length + within;
    const bool tile = cell < tiling.tiles;
    if (tile)
      near[to] = (u16)(target & ((1u << tiling.shift) - 1));
    else
      far[to] = target;
    if (weights) moved_weights[tile ? to : near_end + to] = weights[e];
  });
}
