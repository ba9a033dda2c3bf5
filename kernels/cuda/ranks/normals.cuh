// Push along nn: from the frontier's normal vertices, whose rows are short, to vertices of any rank.
//
// A warp looks which of some rows begin in the frontier, collects them in shared memory and follows
// the edges of many together. A ghost is marked once in a search, and so sent once.
#include "bfs/enqueue.cuh"
#include "ranks/delegates.cuh"

#define NN_UNROLL 4

template <class Offset, class Distance>
struct PushNormals {
  const DelegateRank<Offset, Distance> &rank;
  const DelegateName &name;
  u32 *visited;
  u32 level;
  u32 *buffer;  // BUFFER rows of this warp, in shared memory,
  u32 *before;  // and the edges before each
  u32 count;
  Tally tally;

  // Take those of BUFFER rows from ``first`` on whose vertices are in the frontier.
  __device__ void take(u32 first) {
    u32 vertex[BUFFER / 32], word[BUFFER / 32], taking[BUFFER / 32], all = 0;
#pragma unroll
    for (int i = 0; i < BUFFER / 32; i++) {
      const u32 row = first + i * 32 + lane_id();
      vertex[i] = row < rank.nn_row_count ? __ldg(rank.nn_rows + row) : NONE;
    }
#pragma unroll
    for (int i = 0; i < BUFFER / 32; i++) word[i] = word_of(rank.frontier, vertex[i]);
#pragma unroll
    for (int i = 0; i < BUFFER / 32; i++) {
      taking[i] = __ballot_sync(ALL, bit_of(word[i], vertex[i]));
      all += __popc(taking[i]);
    }
    if (count + all > BUFFER) flush();
#pragma unroll
    for (int i = 0; i < BUFFER / 32; i++) {
      if (taking[i] >> lane_id() & 1)
        buffer[count + __popc(taking[i] & lanes_before())] = first + i * 32 + lane_id();
      count += __popc(taking[i]);
    }
  }

  __device__ void flush() {
    __syncwarp();
    u32 edges = 0, degree[BUFFER / 32];
#pragma unroll
    for (int i = 0; i < BUFFER / 32; i++) {
      u32 at = i * 32 + lane_id();
      degree[i] = 0;
      if (at < count)
        degree[i] = rank.nn_offsets[buffer[at] + 1] - rank.nn_offsets[buffer[at]];
    }
#pragma unroll
    for (int i = 0; i < BUFFER / 32; i++) {
      u32 through = warp_scan(degree[i]);
      before[i * 32 + lane_id()] = edges + through - degree[i];
      edges += __shfl_sync(ALL, through, 31);
    }
    __syncwarp();
    for (u32 at = 0; at < edges; at += 32 * NN_UNROLL) {
      u32 row[NN_UNROLL], target[NN_UNROLL], seen[NN_UNROLL];
#pragma unroll
      for (int i = 0; i < NN_UNROLL; i++) {
        u32 edge = at + i * 32 + lane_id(), place = 0;
        // The last place of those whose edges begin at or before this one.
        for (u32 step = BUFFER / 2; step; step >>= 1)
          if (before[place + step] <= edge) place += step;
        row[i] = buffer[min(place, count - 1)];
        target[i] = NONE;
        if (edge < edges)
          target[i] = __ldg(rank.nn_targets + rank.nn_offsets[row[i]] + (edge - before[place]));
      }
#pragma unroll
      for (int i = 0; i < NN_UNROLL; i++) seen[i] = word_of(visited, target[i]);
#pragma unroll
      for (int i = 0; i < NN_UNROLL; i++) {
        if (target[i] == NONE || bit_of(seen[i], target[i])) continue;
        tally.found++;
        name.found(target[i]);
        atomicOr(&visited[target[i] >> 5], 1u << (target[i] & 31));
        rank.search.parent[target[i]] = name(rank.nn_rows[row[i]]);
        if (target[i] < rank.own_words * 32) rank.search.distance[target[i]] = (Distance)level;
      }
    }
    if (lane_id() == 0) tally.examined += edges;
    count = 0;
    __syncwarp();
  }
};

// Counts what is found more than once as often. scratch: 2 * BUFFER numbers for each warp.
template <class Offset, class Distance>
__device__ __noinline__ Tally push_normals(const DelegateRank<Offset, Distance> &rank,
                                           const DelegateName &name, u32 *visited,
                                           u32 level, u32 *scratch) {
  PushNormals<Offset, Distance> push = {rank, name, visited, level, scratch, scratch + BUFFER, 0, {}};
  const u32 warps = gridDim.x * (blockDim.x / 32);
  const u32 warp = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  for (u64 first = (u64)warp * BUFFER; first < rank.nn_row_count; first += (u64)warps * BUFFER)
    push.take((u32)first);
  if (push.count) push.flush();
  return push.tally;
}
