// Rows whose entries stand by *tiles*: of vertices so few that a block has room for their values in its
// own (shared) memory, and reads them there, not in the second-level cache, which a GPU's warps wait for
// where they read values from anywhere. MultiGraph keeps the destinations of dense blocks there; here it
// is sources, as rows are added up.
//
// A *piece* is a row, or a part of a long one. Each block has a *band* of them, which costs as much as any
// other. Its entries stand *cell* by cell: one for each tile, then one for each *column* of all other
// vertices, whose values the second-level cache holds. What a piece has in a cell is a *segment*. Those of
// about the same length are a *group*, and stand side by side in *chunks*: of each lane an entry after the
// other, of all as many, so that no lane waits for another (SELL-C-sigma: Kreutzer, Hager, Wellein, Fehske,
// Bishop, A Unified Sparse Matrix Data Format for Efficient General Sparse Matrix-Vector Multiplication on
// Modern Processors with Wide SIMD Units, SIAM J. Sci. Comput. 36, 2014). Longer ones are shared by lanes.
//
// A piece has one segment in a cell, and a block is through with a cell before it begins the next one. So a
// sum is added up in the same order each time.
#include "programs/rows.cuh"
#include "programs/sums.cuh"
#include "programs/values.cuh"

#define GROUPS 19  // of a cell: segments of so many lengths
#define AT_ONCE 8  // entries of a lane whose loads are under way at once
#define NOT_A_NUMBER __longlong_as_double(0x7ff8000000000000)

// Entries that a segment of a group has at most: 1, 2, 4, 6, 8, 12, 16, 24, ... 1024.
__device__ constexpr u32 longest(u32 group) {
  return group < 2 ? group + 1 : (group & 1 ? 3u : 2u) << group / 2;
}

// Two to it: the lanes that share a segment.
__device__ constexpr u32 lanes_shift(u32 group) { return group < 7 ? 0 : group < 15 ? (group - 5) / 2 : 5; }

// entries: the first one, of tiles in `near`, of columns in `far`. segments: the first one in `pieces`.
// before: chunks of the same cell's longer groups.
struct Group {
  u64 entries;
  u64 segments;
  u32 chunks;
  u32 before;
};

// groups: of each band, of each cell, of each length. band_rows: of each band its first row, and an end. near:
// of a tile its vertices, by their place in it; 2^shift: none. far: vertices; NONE: none. pieces: of each
// segment; NONE: none. sums: of each piece, of parts of rows and then of rows: 0 before, but NaN, always, where
// a long row would have its own. long_rows, first_parts: as of Rows. near_end: entries in `near`, before those
// in `far` where entries are counted. gpu_programs/tiles.py packs the same structure.
struct Tiles {
  const Group *groups;
  const u32 *band_rows;
  const u16 *near;
  const u32 *far;
  const u32 *pieces;
  double *sums;
  const u32 *long_rows;
  const u32 *first_parts;
  u64 near_end;
  u32 vertices;  // that have values
  u32 longs;
  u32 parts;
  u32 bands;
  u32 tiles;
  u32 columns;
  u32 shift;
};

// The values of a tile, in the block's own memory, and what leads to them. at: which of all entries the
// first one is. end: what leads to none.
template <class Value>
struct NearEntries {
  const u16 *entries;
  const Value *values;
  u64 at;
  u32 end;

  __device__ u32 one(u64 i) const { return __ldcs(entries + i); }
  __device__ uint2 two(u64 i) const {
    const u32 both = __ldcs((const u32 *)(entries + i));
    return {both & 0xffff, both >> 16};
  }
  __device__ uint2 none() const { return {end, end}; }
  __device__ Value value(u32 entry) const { return values[entry]; }
};

template <class Values>
struct FarEntries {
  using Value = typename Values::Value;
  const u32 *entries;
  const Values &values;
  u64 at;

  __device__ u32 one(u64 i) const { return __ldcs(entries + i); }
  __device__ uint2 two(u64 i) const { return __ldcs((const uint2 *)(entries + i)); }
  __device__ uint2 none() const { return {NONE, NONE}; }
  __device__ Value value(u32 entry) const { return entry == NONE ? Value(0) : values[entry]; }
};

// (An atomic operation, not as others might add to the same sum, but as nobody waits for its end.)
__device__ inline void add_to(double *sums, u32 piece, double sum) {
  if (piece != NONE) atomicAdd(sums + piece, sum);
}

// The chunk of a group that a warp begins with, so that all chunks of a cell are dealt out evenly.
__device__ inline u32 first_chunk(const Group &group) {
  const u32 warps = blockDim.x / 32;
  return (threadIdx.x / 32 + warps - group.before % warps) % warps;
}

// Segments of LENGTH entries, or fewer, one a lane; several chunks at once.
template <u32 LENGTH, class From, class Operator>
__device__ inline void add_short(const From &from, const Operator &along, const u32 *pieces,
                                 const Group &group, double *sums) {
  const u32 CHUNKS = LENGTH < AT_ONCE ? AT_ONCE / LENGTH : 1, warps = blockDim.x / 32;
  for (u32 chunk = first_chunk(group); chunk < group.chunks; chunk += CHUNKS * warps) {
    u32 entry[CHUNKS][LENGTH], piece[CHUNKS];
    typename Operator::Two edges[CHUNKS][(LENGTH + 1) / 2];
#pragma unroll
    for (u32 c = 0; c < CHUNKS; c++) {
      const bool there = chunk + c * warps < group.chunks;
      const u64 own = there ? chunk + c * warps : chunk;
      piece[c] = there ? __ldcs(pieces + group.segments + own * 32 + lane_id()) : NONE;
      const u64 first = group.entries + own * 32 * LENGTH;
      if (LENGTH == 1) {
        entry[c][0] = from.one(first + lane_id());
        edges[c][0] = along.one(from.at + first + lane_id());
      }
#pragma unroll
      for (u32 i = 0; i + 1 < LENGTH; i += 2) {
        const u64 place = first + 32 * i + 2 * lane_id();
        const uint2 both = from.two(place);
        entry[c][i] = both.x, entry[c][i + 1] = both.y;
        edges[c][i / 2] = along.two(from.at + place);
      }
    }
    double sum[CHUNKS];
#pragma unroll
    for (u32 c = 0; c < CHUNKS; c++) {
      sum[c] = 0;
#pragma unroll
      for (u32 i = 0; i < LENGTH; i++) {
        const double value = from.value(entry[c][i]);
        sum[c] += i & 1 ? edges[c][i / 2].other(value) : edges[c][i / 2].first(value);
      }
    }
#pragma unroll
    for (u32 c = 0; c < CHUNKS; c++) add_to(sums, piece[c], sum[c]);
  }
}

// Longer ones: 2^shift lanes add up one, of which each has `length` entries, an even number. (What is beyond
// these is read as none, without a branch, so that all loads are under way.)
template <class From, class Operator>
__device__ inline void add_long(const From &from, const Operator &along, const u32 *pieces,
                                const Group &group, u32 length, u32 shift, double *sums) {
  const u32 warps = blockDim.x / 32;
  for (u32 chunk = first_chunk(group); chunk < group.chunks; chunk += warps) {
    const u32 piece = __ldcs(pieces + group.segments + ((u64)chunk * 32 + lane_id() >> shift));
    const u64 first = group.entries + (u64)chunk * 32 * length + 2 * lane_id();
    const u32 pairs = length / 2, PAIRS = AT_ONCE / 2;
    double one = 0, other = 0;
    for (u32 i = 0; i < pairs; i += PAIRS) {
      uint2 both[PAIRS];
      typename Operator::Two edges[PAIRS];
#pragma unroll
      for (u32 k = 0; k < PAIRS; k++) {
        const bool any = i + k < pairs;
        const u64 place = first + 64 * (i + k);
        both[k] = any ? from.two(place) : from.none();
        edges[k] = any ? along.two(from.at + place) : typename Operator::Two{};
      }
#pragma unroll
      for (u32 k = 0; k < PAIRS; k++)
        one += edges[k].first(from.value(both[k].x)), other += edges[k].other(from.value(both[k].y));
    }
    const double sum = lanes_sum(one + other, 1u << shift);
    if ((lane_id() & ((1u << shift) - 1)) == 0) add_to(sums, piece, sum);
  }
}

template <class From, class Operator>
__device__ inline void add_cell(const From &from, const Operator &along, const Tiles &tiles,
                                const Group *groups) {
  for (u32 g = GROUPS; g-- > 0;) {
    const Group group = groups[g];
    if (!group.chunks) continue;
    const u32 shift = lanes_shift(g);
    switch (longest(g)) {
      case 1: add_short<1>(from, along, tiles.pieces, group, tiles.sums); break;
      case 2: add_short<2>(from, along, tiles.pieces, group, tiles.sums); break;
      case 4: add_short<4>(from, along, tiles.pieces, group, tiles.sums); break;
      case 6: add_short<6>(from, along, tiles.pieces, group, tiles.sums); break;
      case 8: add_short<8>(from, along, tiles.pieces, group, tiles.sums); break;
      default: add_long(from, along, tiles.pieces, group, longest(g) >> shift, shift, tiles.sums);
    }
  }
}

// Have a tile's values in the block's own memory, and a 0 behind them for what is none. Called by whole
// blocks, who meet afterwards.
template <class Values>
__device__ inline void hold_tile(typename Values::Value *held, const Tiles &tiles, const Values &values, u32 tile) {
  const u32 first = tile << tiles.shift;
  values.hold(held, first, min(1u << tiles.shift, tiles.vertices - first));
  if (threadIdx.x == 0) held[1u << tiles.shift] = 0;
}

// Add up all pieces, and call `added(first, last)` with the rows of a band, by its block, as soon as their sums
// are there, but for long ones'. Called by the whole grid, whose blocks have shared memory for a tile.
template <class Operator, class Values, class Added>
__device__ inline void add_bands(const Tiles &tiles, const Operator &along, const Values &values, Added added) {
  using Value = typename Values::Value;
  extern __shared__ uint4 tile_memory[];
  __shared__ Group groups[GROUPS];
  Value *const held = (Value *)tile_memory;
  const u32 cells = tiles.tiles + tiles.columns;
  for (u32 band = blockIdx.x; band < tiles.bands; band += gridDim.x) {
    for (u32 cell = 0; cell < cells; cell++) {
      const Group *const of = tiles.groups + ((u64)band * cells + cell) * GROUPS;
      if (threadIdx.x < GROUPS) groups[threadIdx.x] = of[threadIdx.x];
      if (cell < tiles.tiles) hold_tile(held, tiles, values, cell);
      __syncthreads();
      if (cell < tiles.tiles)
        add_cell(NearEntries<Value>{tiles.near, held, 0, 1u << tiles.shift}, along, tiles, groups);
      else
        add_cell(FarEntries<Values>{tiles.far, values, tiles.near_end}, along, tiles, groups);
      __syncthreads();
    }
    added(tiles.band_rows[band], tiles.band_rows[band + 1]);
  }
}
