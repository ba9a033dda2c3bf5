// Passes of a rank over what it knows: before a search, and after its ranks have met.
#include "frontier.cuh"
#include "mail.cuh"
#include "rank.cuh"

// A search that begins: nothing but its source is visited, where this rank has it.
template <class Offset, class Distance>
__device__ void begin_rank(const Rank<Offset, Distance> &rank) {
  const Search<Offset, Distance> &search = rank.search;
  u32 words = rank.own_words + rank.ghost_words;
  for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < words; i += gridDim.x * blockDim.x) {
    search.visited[0][i] = i == search.source >> 5 ? 1u << (search.source & 31) : 0;
    search.visited[1][i] = 0;
  }
  for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < rank.delegate_words;
       i += gridDim.x * blockDim.x)
    rank.found_here[i] = 0;
  if (blockIdx.x) return;
  for (u32 i = threadIdx.x; i < 2 * (rank.ranks + 1); i += blockDim.x) rank.sent[i] = 0;
  if (threadIdx.x == 0) {
    if (search.source != NONE) search.parent[search.source] = NONE;
    for (int i = 0; i < 2; i++) rank.control->visits[i] = rank.control->noted[i] = Counters{};
  }
}

// Enter what the others have found.
template <class Offset, class Distance>
__device__ __noinline__ void receive(const Rank<Offset, Distance> &rank, u32 *visited, u32 level,
                                     u32 parity) {
  const Readers readers = Readers::of(rank.ranks - 1);
  const u32 thread = readers.thread, threads = readers.threads;
  for (u32 i = readers.first; i + 1 < rank.ranks; i += readers.step) {
    const u32 sender = (rank.rank + 1 + i) % rank.ranks;  // not all read from one
    const Peer &peer = rank.peers[sender];
    const Arrival &arrival = rank.arrivals[2 * sender + parity];
    const u32 delegates = far_load(&arrival.delegates), ghosts = far_load(&arrival.ghosts);
    const u32 *mail = peer.mail[parity];
    if (delegates > rank.delegate_words) {
      read_bitmap(mail, rank.delegate_words, readers,
                  [&](u32 w, u32 theirs) { atomicOr(&visited[w], theirs); });
    } else {
      for (u32 k = thread; k < delegates; k += threads) {
        u32 vertex = far_load(mail + rank.delegate_words + k);
        if (!has(visited, vertex)) atomicOr(&visited[vertex >> 5], 1u << (vertex & 31));
      }
    }
    if (!ghosts) continue;
    mail += 2 * rank.delegate_words + peer.ghosts_at;
    auto take = [&](const bool(&mine)[AT_ONCE], const u32(&ghost)[AT_ONCE]) {
      u32 vertex[AT_ONCE];
#pragma unroll
      for (int k = 0; k < AT_ONCE; k++) vertex[k] = mine[k] ? peer.vertex[ghost[k]] : NONE;
      enter_found<true>(mine, ghost, vertex, peer.parent, peer.wanted, rank.search, visited, level);
    };
    read_mail(mail, mail + peer.all_ghost_words, ghosts, peer.ghost_words, readers, take);
  }
}

// Give what is new its distance (`pushed`, or else the delegates: a pull sees to the others), count
// it, make it the frontier; `enqueueing`: unless there is too much of it, queue it.
template <class Offset, class Distance>
__device__ __noinline__ Tally note_new(const Graph<Offset> &graph,
                                       const Rank<Offset, Distance> &rank, u32 level,
                                       bool pushed, bool enqueueing, Enqueue<Offset> queue) {
  const Search<Offset, Distance> &search = rank.search;
  Tally tally = {};
  const Sharing sharing = Sharing::of_grid();
  for (u32 turn = 0; sharing.any(turn, rank.own_words); turn++) {
    const u32 first = sharing.first(turn);
    u32 now[EACH_LANE], old[EACH_LANE], fresh[EACH_LANE];
    load_words(now, search.visited[0], first, rank.own_words);
    load_words(old, search.visited[1], first, rank.own_words);
    u32 any = 0;
#pragma unroll
    for (int i = 0; i < EACH_LANE; i++) {
      fresh[i] = now[i] & ~old[i];
      any |= fresh[i];
      const u32 w = first + i, last = graph.vertices >> 5;
      const u32 below = w < last ? ALL : w == last ? (1u << (graph.vertices & 31)) - 1 : 0;
      tally.wasted += __popc(fresh[i] & below);
      (w < rank.delegate_words ? tally.examined : tally.found) += __popc(fresh[i]);
    }
    if (first < rank.own_words) {
      *(uint4 *)(rank.frontier + first) = uint4{fresh[0], fresh[1], fresh[2], fresh[3]};
      if (any) *(uint4 *)(search.visited[1] + first) = uint4{now[0], now[1], now[2], now[3]};
    }
    if (!__any_sync(ALL, any)) continue;
#pragma unroll
    for (int i = 0; i < EACH_LANE; i++) {
      if (pushed || first < rank.delegate_words)
        set_distances(search.distance, first + i, fresh[i], old[i], level);
      if (enqueueing &&
          __shfl_sync(ALL, QUEUED_VERTICES(__ldcg(queue.queued)), 0) <= search.enqueue_edges)
        enqueue(graph, first + i, fresh[i], queue);
    }
  }
  if (queue.count) queue.flush();
  return tally;
}
