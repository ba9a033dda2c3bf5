// From rows to slices (slice_search.cu): an order of the vertices, and a sort of all entries.
#include "base/warp.cuh"
#include "base/work.cuh"

#define SET 8         // columns of a set
#define COLUMNS 4     // slices of a lane
#define SLICES 128    // of a virtual set

// Where vertices with like neighbours stand together: by the least of two hashes over each row's
// targets (a cheap stand-in for the paper's JaccardWithWindows, Algorithm 1). A warp a row.
template <class Offset>
__global__ void min_hashes(const Offset *offsets, const u32 *targets, u32 rows, u64 *hashes) {
  FOR_STRIPS(row, rows) {
    u32 least[2] = {NONE, NONE};
    for (u64 i = offsets[row] + lane_id(); i < offsets[row + 1]; i += 32) {
      u32 mixed = (targets[i] + 1) * 0x9e3779b1u;
      mixed = (mixed ^ mixed >> 15) * 0x85ebca77u;
      least[0] = min(least[0], mixed ^ mixed >> 13);
      mixed = (mixed ^ mixed >> 16) * 0xc2b2ae3du;
      least[1] = min(least[1], mixed ^ mixed >> 16);
    }
    for (int step = 16; step; step >>= 1)
      for (int k = 0; k < 2; k++) least[k] = min(least[k], __shfl_xor_sync(ALL, least[k], step));
    if (lane_id() == 0) hashes[row] = (u64)least[0] << 32 | least[1];
  }
}

// A key for each entry: its source's set, its target, its source's place in the set. place: of each
// vertex, in the order of the slices.
template <class Offset>
__global__ void slice_keys(const Offset *offsets, const u32 *targets, u64 entries, u32 rows,
                           const u32 *place, u64 *keys) {
  FOR_STRIPS(strip, (entries + LONG_STRIP - 1) / LONG_STRIP) {
    const u64 begin = strip * LONG_STRIP, end = min(begin + LONG_STRIP, entries);
    const u32 low = row_of(offsets, 0u, rows, begin), high = row_of(offsets, low, rows, end - 1) + 1;
    for (u64 i = begin + lane_id(); i < end; i += 32) {
      const u32 column = place[row_of(offsets, low, high, i)];
      keys[i] = (u64)(column / SET) << 35 | (u64)place[targets[i]] << 3 | column % SET;
    }
  }
}

// Whether sorted keys[i] is the first one of a slice.
__global__ void mark_slices(const u64 *keys, u64 entries, u8 *begins) {
  FOR_ITEMS(i, entries) begins[i] = i == 0 || keys[i] >> 3 != keys[i - 1] >> 3;
}

// starts: the first key of each slice. first_slice: of each set the first of its slices. rows, masks,
// first: see Slices in slice_search.cu; rows and masks are zero where nothing is written.
__global__ void write_slices(const u64 *keys, u64 entries, const u64 *starts, u64 slices,
                             const u64 *first_slice, const u32 *first, u32 *rows, u8 *masks) {
  FOR_ITEMS(j, slices) {
    const u64 slice = keys[starts[j]] >> 3;
    u32 mask = 0;
    for (u64 i = starts[j]; i < entries && keys[i] >> 3 == slice; i++) mask |= 1u << (keys[i] & 7);
    const u32 set = (u32)(slice >> 32);
    const u64 k = j - first_slice[set];
    const u64 at = ((first[set] + k / SLICES) * 32 + k % 32) * COLUMNS + k % SLICES / 32;
    rows[at] = (u32)slice;
    masks[at] = (u8)mask;
  }
}
