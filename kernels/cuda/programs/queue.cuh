// Vertices whose edges are to be followed, and the warps that share these.
#include "programs/rows.cuh"

#define PART 128  // entries of an item, at most
#define AHEAD 2   // entries of a lane that are looked at together

// A part of a row: a vertex of many edges is several items, so that none takes long.
struct __align__(8) Item {
  u32 vertex, part;
};

// All lanes of a warp append, each its vertex as so many items. Order in a queue has no meaning.
__device__ inline void push_items(Item *queue, u32 *count, u32 vertex, u32 items) {
  if (!__any_sync(ALL, items > 0)) return;
  const u32 upto = warp_scan(items), all = __shfl_sync(ALL, upto, 31);
  u32 first = 0;
  if (lane_id() == 0) first = atomicAdd(count, all);
  first = __shfl_sync(ALL, first, 0) + upto - items;
  for (u32 part = 0; part < items; part++) queue[first + part] = {vertex, part};
}

// The same of vertices alone.
__device__ inline void push_vertex(u32 *pile, u32 *count, u32 vertex, bool wanted) {
  const u32 who = __ballot_sync(ALL, wanted);
  if (!who) return;
  u32 first = 0;
  if (lane_id() == 0) first = atomicAdd(count, (u32)__popc(who));
  first = __shfl_sync(ALL, first, 0);
  if (wanted) pile[first + __popc(who & lanes_before())] = vertex;
}

// Vertices that a warp has found and keeps until there are 32: then it moves the end of a queue once for all of
// them. (The ends of queues are where all warps wait for each other otherwise.) slots: of each warp of a block,
// in shared memory. `put(vertex, any)` is called by whole warps.
struct Kept {
  typedef u32 Slots[32][64];
  u32 *const slots;
  u32 count;

  __device__ explicit Kept(Slots &all) : slots(all[threadIdx.x / 32]), count(0) {}

  template <class Put>
  __device__ void keep(u32 vertex, bool wanted, Put put) {
    const u32 who = __ballot_sync(ALL, wanted);
    if (!who) return;
    if (wanted) slots[count + __popc(who & lanes_before())] = vertex;
    count += __popc(who);
    __syncwarp();
    if (count < 32) return;
    const u32 first = slots[lane_id()], next = slots[32 + lane_id()];
    __syncwarp();
    slots[lane_id()] = next, count -= 32;
    __syncwarp();
    put(first, true);
  }

  // What is left.
  template <class Put>
  __device__ void put_all(Put put) {
    const bool any = lane_id() < count;
    if (count) put(any ? slots[lane_id()] : NONE, any);
    count = 0;
    __syncwarp();
  }
};

template <class Offset>
__device__ inline u32 items_of(const Offset *offsets, u32 vertex) {
  return (u32)(((u64)offsets[vertex + 1] - offsets[vertex] + PART - 1) / PART);
}

// The same where each vertex is to be an item, though no edge leaves it: it has been found.
template <class Offset>
__device__ inline u32 items_found(const Offset *offsets, u32 vertex) {
  return max(items_of(offsets, vertex), 1u);
}

// Call `visit(own, seen, any)` with each entry of some items, by all lanes of a warp together; any: whether
// a lane has one. own: what `begin(vertex)` gave of the row's vertex, 4 or 8 bytes. seen: what `look(edge)` gave,
// of several entries before any is visited. A warp takes so many items at a time that all have some; its
// lanes find theirs among the entries by a prefix sum (Merrill, Garland, Grimshaw: Scalable GPU Graph
// Traversal, PPoPP 2012, section 5.2).
template <class Offset, class Begin, class Look, class Visit>
__device__ inline void follow(const Offset *offsets, const Item *items, u32 count, Crew crew,
                              Begin begin, Look look, Visit visit) {
  const u32 each = min(max(count / crew.warps, 1u), 32u);
  for (u64 first = (u64)crew.warp * each; first < count; first += (u64)crew.warps * each) {
    u32 entries = 0;
    u64 start = 0;
    decltype(begin(0)) own = {};
    if (lane_id() < each && first + lane_id() < count) {
      const uint2 item = __ldcg((const uint2 *)(items + first + lane_id()));
      start = offsets[item.x] + (u64)item.y * PART;
      entries = (u32)min((u64)offsets[item.x + 1] - start, (u64)PART);
      own = begin(item.x);
    }
    const u32 upto = warp_scan(entries), all = __shfl_sync(ALL, upto, 31);
    start -= upto - entries;
    for (u32 base = 0; base < all; base += 32 * AHEAD) {
      decltype(begin(0)) owns[AHEAD];
      decltype(look(0)) seen[AHEAD];
#pragma unroll
      for (u32 ahead = 0; ahead < AHEAD; ahead++) {
        const u32 k = base + 32 * ahead + lane_id();
        u32 owner = 0;  // lanes whose entries all come before
#pragma unroll
        for (u32 step = 16; step; step /= 2)
          if (__shfl_sync(ALL, upto, owner + step - 1) <= k) owner += step;
        owner = min(owner, 31u);
        const u64 edge = __shfl_sync(ALL, start, owner) + k;
        owns[ahead] = __shfl_sync(ALL, own, owner);
        seen[ahead] = {};
        if (k < all) seen[ahead] = look(edge);
      }
#pragma unroll
      for (u32 ahead = 0; ahead < AHEAD; ahead++)
        if (base + 32 * ahead < all)
          visit(owns[ahead], seen[ahead], base + 32 * ahead + lane_id() < all);
    }
  }
}

// Call `visit(at, row, some, lane, width)` with each of some items, by all lanes of a warp that take it; at:
// which it is, some: its entries. Lanes for which there is none are given NONE twice and no entries. few: as of
// Width.
template <class Offset, class Visit>
__device__ inline void visit_items(const Rows<Offset> &rows, const Item *items, u32 count, Crew crew,
                                   Visit visit, u32 few = Width::FEW) {
  const u32 each = min(max(count / crew.warps, 1u), 32u);
  for (u64 first = (u64)crew.warp * each; first < count; first += (u64)crew.warps * each) {
    const u32 here = (u32)min((u64)each, count - first);
    u32 vertex = NONE, length = 0;
    u64 begin = 0;
    if (lane_id() < here) {
      const uint2 item = __ldcg((const uint2 *)(items + first + lane_id()));
      const Entries row = entries_of(rows, item.x);
      vertex = item.x, begin = row.begin + (u64)item.y * PART;
      length = (u32)min(row.end - begin, (u64)PART);
    }
    const Width share(warp_sum(length), here, few);
    for (u32 base = 0; base < here; base += share.rows()) {
      const u32 at = base + share.row();
      const u64 start = __shfl_sync(ALL, begin, at);
      const u32 row = __shfl_sync(ALL, vertex, at), entries = __shfl_sync(ALL, length, at);
      const Entries some = {start, start + entries};
      visit(at < here ? (u32)first + at : NONE, row, some, share.lane(), share.width);
    }
  }
}

// Warps that go on together: all of the grid, or one block of it while others wait.
struct Grid {
  u64 *arrived;

  static const bool ALONE = false;
  __device__ Crew crew() const { return whole_grid(); }
  __device__ bool leads() const { return blockIdx.x == 0 && threadIdx.x == 0; }
  __device__ u32 thread() const { return blockIdx.x * blockDim.x + threadIdx.x; }
  __device__ u32 threads() const { return gridDim.x * blockDim.x; }
  __device__ void meet() const { grid_barrier(arrived); }
};

struct Alone {
  static const bool ALONE = true;
  __device__ Crew crew() const { return own_block(); }
  __device__ bool leads() const { return threadIdx.x == 0; }
  __device__ u32 thread() const { return threadIdx.x; }
  __device__ u32 threads() const { return blockDim.x; }
  __device__ void meet() const {
    __threadfence();
    __syncthreads();
  }
};
