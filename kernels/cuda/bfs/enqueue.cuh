// Vertices that a warp found, collected in shared memory, and put in the queue many at a time.
//
// One atomic addition gives a place in the queue and the number of edges before it at once: the
// places rise as the edges do, so that the next push can look up any edge's vertex (Gunrock's
// load-balanced search over a scan; here no scan is needed).
#include "bfs/search.cuh"

#define BUFFER 128
#define UNROLL 4
#define LONGEST_STRIP 1024

// Edges that each of some warps takes at a time, so that all have the same share.
__device__ inline u32 strip_length(u64 edges, u32 warps) {
  const u64 share = (edges + warps - 1) / warps;
  return (u32)min((u64)LONGEST_STRIP, (share + 31) / 32 * 32);
}

// The last of `count` places whose `before` is at most `edge`: 32 probes at a time.
template <class Offset>
__device__ inline u32 find_place(const Offset *before, u32 count, u64 edge) {
  u32 low = 0;
  while (count > 1) {
    u32 step = (count + 31) / 32;
    u32 probe = low + lane_id() * step;
    bool within = lane_id() * step < count && before[probe] <= edge;
    u32 last = 31 - __clz(__ballot_sync(ALL, within));
    low += last * step;
    count = min(step, count - last * step);
  }
  return low;
}

template <class Offset>
struct Enqueue {
  const Offset *offsets;
  Queue<Offset> queue;
  u64 *queued;
  u32 *buffer;  // of this warp, in shared memory
  u32 count = 0;

  // Called by whole warps; N times 32 vertices fit the buffer.
  template <int N>
  __device__ void add(const bool (&mine)[N], const u32 (&vertex)[N]) {
    u32 adding[N], all = 0;
#pragma unroll
    for (int i = 0; i < N; i++) {
      adding[i] = __ballot_sync(ALL, mine[i]);
      all += __popc(adding[i]);
    }
    if (count + all > BUFFER) flush();
#pragma unroll
    for (int i = 0; i < N; i++) {
      if (mine[i]) buffer[count + __popc(adding[i] & lanes_before())] = vertex[i];
      count += __popc(adding[i]);
    }
  }

  __device__ void flush() {
    __syncwarp();
    u32 vertex[BUFFER / 32];
    Offset row[BUFFER / 32];
    u32 degree[BUFFER / 32];
    u32 vertices = 0, own_edges = 0;
#pragma unroll
    for (int i = 0; i < BUFFER / 32; i++) {
      u32 at = i * 32 + lane_id();
      degree[i] = 0;
      if (at < count) {
        vertex[i] = buffer[at];
        row[i] = offsets[vertex[i]];
        degree[i] = (u32)(offsets[vertex[i] + 1] - row[i]);
      }
    }
#pragma unroll
    for (int i = 0; i < BUFFER / 32; i++) {
      vertices += __popc(__ballot_sync(ALL, degree[i] != 0));
      own_edges += degree[i];
    }
    u64 edges = warp_sum(own_edges & 0xffff) + ((u64)warp_sum(own_edges >> 16) << 16);
    u64 base = 0;
    if (lane_id() == 0 && vertices) base = atomicAdd(queued, QUEUED(vertices, edges));
    base = __shfl_sync(ALL, base, 0);
    u32 place = QUEUED_VERTICES(base);
    u64 before = QUEUED_EDGES(base);
#pragma unroll
    for (int i = 0; i < BUFFER / 32; i++) {
      if (i * 32 >= count) break;
      u32 queueing = __ballot_sync(ALL, degree[i] != 0);
      u64 through = warp_scan((u64)degree[i]);
      if (degree[i]) {
        u32 at = place + __popc(queueing & lanes_before());
        queue.vertex[at] = vertex[i];
        queue.row[at] = row[i];
        queue.before[at] = (Offset)(before + through - degree[i]);
      }
      place += __popc(queueing);
      before += __shfl_sync(ALL, through, 31);
    }
    count = 0;
    __syncwarp();
  }
};

// Put the vertices of some lanes in a queue at once: where they are few, and loads of their rows are
// what is waited for. Called by whole warps.
template <class Offset>
__device__ __noinline__ void enqueue_now(const Offset *offsets, const Queue<Offset> &queue,
                                         u64 *queued, bool mine, u32 vertex) {
  const Offset row = mine ? offsets[vertex] : 0;
  const u32 degree = mine ? (u32)(offsets[vertex + 1] - row) : 0;
  const u32 queueing = __ballot_sync(ALL, degree != 0);
  const u64 through = warp_scan((u64)degree);
  u64 base = 0;
  if (lane_id() == 31 && queueing) base = atomicAdd(queued, QUEUED(__popc(queueing), through));
  base = __shfl_sync(ALL, base, 31);
  if (!degree) return;
  const u32 at = QUEUED_VERTICES(base) + __popc(queueing & lanes_before());
  queue.vertex[at] = vertex;
  queue.row[at] = row;
  queue.before[at] = (Offset)(QUEUED_EDGES(base) + through - degree);
}

// Where a pull puts what it finds: in a queue, or nowhere.
template <class Offset>
struct Into {
  const Offset *offsets;
  Queue<Offset> queue;
  u64 *queued;  // null: nowhere

  __device__ bool wanted() const { return queued != nullptr; }
  __device__ void add(bool mine, u32 vertex) const {
    if (__any_sync(ALL, mine)) enqueue_now(offsets, queue, queued, mine, vertex);
  }
};

struct Nowhere {
  __device__ bool wanted() const { return false; }
  __device__ void add(bool mine, u32 vertex) const {}
};
