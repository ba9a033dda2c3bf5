// The operation `intersect` on a device: the triangles at each vertex (kernels/pieces/intersect.py). A vertex's number is
// its position, by falling degree, and its row has the neighbours that come before it, rising. A triangle is found at
// its last corner: the row of a middle corner, which is in the row of the last one, is passed, and what it has in common
// with that row is looked up in a hash table in shared memory (Pandey and others: TRUST: Triangle Counting Reloaded on
// GPUs, IEEE TPDS 2021). The table is a warp's, or a block's. It has a part of a row that is longer.
#include "programs/rows.cuh"

// Steps of a pass in the time that one step of a search takes: it waits for memory before the next one.
#define PASSED_FOR_SEARCHED 2

// ways: the number of directed edges between both ends of an entry, 1 or 2; in an undirected graph it is not read.
// gpu_pieces/intersect.py packs the same structure.
template <class Offset>
struct Earlier {
  const Offset *offsets;
  const u32 *targets;
  const u32 *ways;
};

// What is counted: triangles at vertices, by position. edges: directed edges between neighbours. looked: at how many
// entries. A corner, or an edge between two corners, is told of by the entry of a row that it stands in.
template <bool WITH_EDGES>
struct AtVertices {
  u64 *triangles;
  u64 *edges;
  u64 *looked;
  static const bool DIRECTED = WITH_EDGES;

  __device__ void add(u32 vertex, u64 more_triangles, u64 more_edges) const {
    if (!more_triangles) return;
    atomicAdd(triangles + vertex, more_triangles);
    if (DIRECTED) atomicAdd(edges + vertex, more_edges);
  }
  template <class Rows>
  __device__ void add_entry(const Rows &rows, u64 entry, u64 more_triangles, u64 more_edges) const {
    add(rows.targets[entry], more_triangles, more_edges);
  }
  __device__ void add_last(u32 vertex, u64 more_triangles, u64 more_edges) const {
    add(vertex, more_triangles, more_edges);
  }
  __device__ void add_between(u64) const {}  // of the edge between both other corners
};

// The same: triangles at edges, by entry.
struct AtEdges {
  u32 *triangles;
  u64 *looked;
  static const bool DIRECTED = false;

  template <class Rows>
  __device__ void add_entry(const Rows &, u64 entry, u64 more_triangles, u64) const {
    if (more_triangles) atomicAdd(triangles + entry, (u32)more_triangles);
  }
  __device__ void add_last(u32, u64, u64) const {}
  __device__ void add_between(u64 entry) const { atomicAdd(triangles + entry, 1u); }
};

// The threads that share a table.
struct OneWarp {
  __device__ u32 thread() const { return lane_id(); }
  __device__ u32 threads() const { return 32; }
  __device__ void meet() const { __syncwarp(); }
};

struct OneBlock {
  __device__ u32 thread() const { return threadIdx.x; }
  __device__ u32 threads() const { return blockDim.x; }
  __device__ void meet() const { __syncthreads(); }
};

// The first corners of a part of a row, up to MOST, and what is found at each. Half of the slots stay empty.
template <bool DIRECTED, int MOST>
struct Table {
  static_assert((MOST & (MOST - 1)) == 0, "a power of two");
  u32 first[2 * MOST];  // NONE where a slot is empty
  u32 triangles[2 * MOST];
  u32 edges[DIRECTED ? 2 * MOST : 1];
  u8 ways[DIRECTED ? 2 * MOST : 1];

  __device__ u32 slot(u32 vertex, u32 bits) const { return vertex * 0x9E3779B1u >> (32 - bits); }

  __device__ void put(u32 vertex, u32 bits, u32 ways_there) {
    u32 at = slot(vertex, bits);
    while (atomicCAS(first + at, NONE, vertex) != NONE) at = (at + 1) & ((1u << bits) - 1);
    if (DIRECTED) ways[at] = ways_there;
  }

  // The slot of a vertex, or NONE.
  __device__ u32 find(u32 vertex, u32 bits) const {
    u32 at = slot(vertex, bits);
    while (first[at] != vertex) {
      if (first[at] == NONE) return NONE;
      at = (at + 1) & ((1u << bits) - 1);
    }
    return at;
  }

  __device__ void add(u32 at, u32 more_triangles, u32 more_edges) {
    atomicAdd(triangles + at, more_triangles);
    if (DIRECTED) atomicAdd(edges + at, more_edges);
  }
};

// The first entry of a span that is not before a target, or its end.
__device__ inline u64 at_or_after(const u32 *targets, Entries span, u32 target) {
  while (span.begin < span.end) {
    const u64 middle = (span.begin + span.end) / 2;
    if (__ldg(targets + middle) < target)
      span.begin = middle + 1;
    else
      span.end = middle;
  }
  return span.begin;
}

// Count the triangles whose last corner is `last` and whose first corner is in a part of its row.
template <class Counts, int MOST, class Group, class Offset>
__device__ inline void count_part(const Group &group, Table<Counts::DIRECTED, MOST> &table, const Earlier<Offset> &rows,
                                  u32 last, Entries part, const Counts &counts) {
  const bool DIRECTED = Counts::DIRECTED;
  const u64 row_end = rows.offsets[last + 1];
  const u32 length = (u32)(part.end - part.begin), bits = 32 - __clz(2 * length - 1);
  const u32 least = rows.targets[part.begin], greatest = rows.targets[part.end - 1];
  for (u32 at = group.thread(); at < 1u << bits; at += group.threads()) {
    table.first[at] = NONE, table.triangles[at] = 0;
    if (DIRECTED) table.edges[at] = 0;
  }
  group.meet();
  for (u32 k = group.thread(); k < length; k += group.threads())
    table.put(rows.targets[part.begin + k], bits, DIRECTED ? rows.ways[part.begin + k] : 0);
  group.meet();
  u64 here = 0, edges_here = 0, looked = 0;
  // A warp takes a middle corner at a time: one that comes after some entry of the part.
  for (u64 e = part.begin + 1 + group.thread() / 32; e < row_end; e += group.threads() / 32) {
    const u32 middle = rows.targets[e], ways = DIRECTED ? rows.ways[e] : 0;
    Entries other = {rows.offsets[middle], rows.offsets[middle + 1]};
    if (length == MOST) {  // the row may go on before and behind
      other.begin = at_or_after(rows.targets, other, least);
      if (greatest != NONE) other.end = at_or_after(rows.targets, other, greatest + 1);
    }
    if (other.begin == other.end) continue;
    const u32 firsts = (u32)(min(e, part.end) - part.begin);
    const u64 passed = other.end - other.begin;
    u32 both = 0, edges_middle = 0, edges_last = 0;
    auto meet = [&](u32 at, u64 other_entry) {
      both++;
      table.add(at, 1, ways);
      counts.add_between(other_entry);
      if (DIRECTED) edges_last += rows.ways[other_entry], edges_middle += table.ways[at];
    };
    const u64 steps = (u64)((firsts + 31) / 32) * (32 - __clz((u32)passed)) * PASSED_FOR_SEARCHED;
    if (steps < (passed + 31) / 32) {
      looked += firsts;
      for (u32 k = lane_id(); k < firsts; k += 32) {
        const u32 target = rows.targets[part.begin + k];
        const u64 at = at_or_after(rows.targets, other, target);
        if (at < other.end && rows.targets[at] == target) meet(table.find(target, bits), at);
      }
    } else {
      looked += passed;
      for (u64 at = other.begin + lane_id(); at < other.end; at += 32) {
        const u32 found = table.find(__ldg(rows.targets + at), bits);
        if (found != NONE) meet(found, at);
      }
    }
    both = warp_sum(both);
    if (!both) continue;
    if (DIRECTED) edges_middle = warp_sum(edges_middle), edges_last = warp_sum(edges_last);
    if (lane_id()) continue;
    here += both, edges_here += edges_last;
    if (e < part.end)
      table.add(table.find(middle, bits), both, edges_middle);
    else
      counts.add_entry(rows, e, both, edges_middle);
  }
  group.meet();
  for (u32 k = group.thread(); k < length; k += group.threads()) {
    const u32 at = table.find(rows.targets[part.begin + k], bits);
    counts.add_entry(rows, part.begin + k, table.triangles[at], DIRECTED ? table.edges[at] : 0);
  }
  if (lane_id() == 0) {
    counts.add_last(last, here, edges_here);
    atomicAdd(counts.looked, looked);
  }
  group.meet();  // before the table is another part's
}

// Count the triangles whose last corners are in `list`, with rows of 2 to MOST entries, a warp each.
template <class Offset, class Counts, int MOST, int THREADS>
__global__ void __launch_bounds__(THREADS)
    count_short(const __grid_constant__ Earlier<Offset> rows, const u32 *list, u32 count, const Counts counts) {
  __shared__ Table<Counts::DIRECTED, MOST> tables[THREADS / 32];
  FOR_STRIPS(at, count) {
    const Entries row = {rows.offsets[list[at]], rows.offsets[list[at] + 1]};
    count_part(OneWarp(), tables[threadIdx.x / 32], rows, list[at], row, counts);
  }
}

// Count the triangles whose last corners are in `list`, a block each; first corners are in the part of the row that is
// told by `parts`, and has MOST entries.
template <class Offset, class Counts, int MOST, int THREADS>
__global__ void __launch_bounds__(THREADS)
    count_long(const __grid_constant__ Earlier<Offset> rows, const u32 *list, const u32 *parts, u32 count,
               const Counts counts) {
  __shared__ Table<Counts::DIRECTED, MOST> table;
  for (u32 at = blockIdx.x; at < count; at += gridDim.x) {
    const u64 begin = rows.offsets[list[at]] + (u64)parts[at] * MOST;
    count_part(OneBlock(), table, rows, list[at], {begin, min(begin + MOST, (u64)rows.offsets[list[at] + 1])}, counts);
  }
}

// List the edges as keys, later end << 32 | earlier end, by position. TWICE: edges stand in the rows of both ends, and
// are listed once. position: by vertex; null where it is the vertex's number. listed: counts them.
template <class Offset, bool TIERED, bool TWICE, int THREADS, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS)
    list_earlier(const __grid_constant__ Rows<Offset> rows, const u32 *position, u64 *keys, u64 *listed) {
  auto place = [&](u32 vertex) { return position ? __ldg(position + vertex) : vertex; };
  visit_rows(rows, whole_grid(), [&](u32 row, Entries, Entries some, u32 lane, u32 width) {
    const u32 one = row == NONE ? 0 : place(row);
    auto visit = [&](auto then) {
      for (u64 e = some.begin + lane; e < some.end; e += width) {
        const u32 other = place(entry<TIERED>(rows.targets, e));
        if (!TWICE || other < one) then((u64)max(one, other) << 32 | min(one, other));
      }
    };
    u32 own = 0;
    visit([&](u64) { own++; });
    const u32 until = warp_scan(own), all = __shfl_sync(ALL, until, 31);
    if (!all) return;
    u64 into = 0;
    if (lane_id() == 0) into = atomicAdd(listed, (u64)all);
    into = __shfl_sync(ALL, into, 0) + until - own;
    visit([&](u64 key) { keys[into++] = key; });
  });
}

// Count the edges to each target.
template <bool TIERED>
__global__ void count_ends(const Targets targets, u64 entries, u64 *counts) {
  FOR_ITEMS(e, entries) atomicAdd(counts + entry_once<TIERED>(targets, e), 1ull);
}
