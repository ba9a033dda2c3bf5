// Push along nn: from the frontier's normal vertices, whose rows are short, to vertices of any rank.
//
// A warp collects vertices in shared memory and follows the edges of many together. A ghost is
// marked once in a search, and so sent once.
#include "enqueue.cuh"
#include "rank.cuh"

#define NN_UNROLL 4

template <class Offset, class Distance>
struct PushNormals {
  const Rank<Offset, Distance> &rank;
  u32 *visited;
  u32 *buffer;  // BUFFER vertices of this warp, in shared memory,
  u32 *before;  // and the edges before each
  u32 count;
  u32 examined;

  // Each lane's vertices: those of its words of a bitmap, from word `first` on.
  __device__ void add(u32 (&word)[EACH_LANE], u32 first) {
    u32 own = 0;
#pragma unroll
    for (int i = 0; i < EACH_LANE; i++) own += __popc(word[i]);
    const u32 through = warp_scan(own);
    u32 place = count + through - own, left = __shfl_sync(ALL, through, 31);
    while (left) {
      const u32 taking = min(left, BUFFER - count);
#pragma unroll
      for (int i = 0; i < EACH_LANE; i++) {
        for (; word[i] && place < BUFFER; word[i] &= word[i] - 1)
          buffer[place++] = (first + i) * 32 + __ffs(word[i]) - 1 - rank.name.normals;
      }
      count += taking;
      left -= taking;
      if (count < BUFFER) break;
      flush();
      place -= BUFFER;  // of lanes whose turn has not come; the others have nothing left
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
      u32 source[NN_UNROLL], target[NN_UNROLL], seen[NN_UNROLL];
#pragma unroll
      for (int i = 0; i < NN_UNROLL; i++) {
        u32 edge = at + i * 32 + lane_id(), place = 0;
        // The last place of those whose edges begin at or before this one.
        for (u32 step = BUFFER / 2; step; step >>= 1)
          if (before[place + step] <= edge) place += step;
        source[i] = buffer[min(place, count - 1)];
        target[i] = NONE;
        if (edge < edges)
          target[i] = __ldg(rank.nn_targets + rank.nn_offsets[source[i]] + (edge - before[place]));
      }
#pragma unroll
      for (int i = 0; i < NN_UNROLL; i++) seen[i] = word_of(visited, target[i]);
#pragma unroll
      for (int i = 0; i < NN_UNROLL; i++) {
        if (target[i] == NONE || bit_of(seen[i], target[i])) continue;
        atomicOr(&visited[target[i] >> 5], 1u << (target[i] & 31));
        rank.search.parent[target[i]] = rank.name(source[i] + rank.name.normals);
      }
    }
    if (lane_id() == 0) examined += edges;
    count = 0;
    __syncwarp();
  }
};

// Returns the edges that a thread's share examined. scratch: 2 * BUFFER numbers for each warp.
template <class Offset, class Distance>
__device__ __noinline__ u32 push_normals(const Rank<Offset, Distance> &rank, u32 *visited,
                                         u32 *scratch) {
  PushNormals<Offset, Distance> push = {rank, visited, scratch, scratch + BUFFER, 0, 0};
  const Sharing sharing = Sharing::of_grid();
  for (u32 turn = 0; sharing.any(turn, rank.own_words - rank.delegate_words); turn++) {
    const u32 first = rank.delegate_words + sharing.first(turn);
    u32 own[EACH_LANE], with_nn[EACH_LANE];
    load_words(own, rank.frontier, first, rank.own_words);
    load_words(with_nn, rank.with_nn, first, rank.own_words);
#pragma unroll
    for (int i = 0; i < EACH_LANE; i++) own[i] &= with_nn[i];
    push.add(own, first);
  }
  if (push.count) push.flush();
  return push.examined;
}
