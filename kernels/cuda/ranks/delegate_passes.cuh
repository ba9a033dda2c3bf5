// Passes of a rank with delegates over what it knows: before a search, and after ranks have met.
#include "ranks/frontier.cuh"
#include "ranks/mail.cuh"
#include "ranks/delegates.cuh"

// Set the bits of all lines.
template <class Offset, class Distance>
__device__ void set_all(const DelegateRank<Offset, Distance> &rank, const Lines &changed, u32 bits) {
  const u32 words = ((rank.own_words + rank.ghost_words) / LINE + 31) / 32;
  for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < words; i += gridDim.x * blockDim.x)
    changed.bits[i] = bits;
}

// A search that begins: nothing but its source is visited, where this rank has it.
template <class Offset, class Distance>
__device__ void begin(const DelegateRank<Offset, Distance> &rank) {
  const Search<Offset, Distance> &search = rank.search;
  u32 words = rank.own_words + rank.ghost_words;
  for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < words; i += gridDim.x * blockDim.x) {
    search.visited[0][i] = i == search.source >> 5 ? 1u << (search.source & 31) : 0;
    search.visited[1][i] = 0;
    if (i < rank.own_words) rank.frontier[i] = 0;
  }
  for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < rank.delegate_words;
       i += gridDim.x * blockDim.x)
    rank.found_here[i] = 0;
  for (const Lines &changed : rank.changed) set_all(rank, changed, 0);
  // The thread that has just cleared this word.
  const u32 thread = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
  if (search.source != NONE && (search.source >> 15) % threads == thread)
    rank.changed[0].mark(search.source);
  if (blockIdx.x) return;
  for (u32 i = threadIdx.x; i < 2 * (rank.ranks + 1); i += blockDim.x) rank.sent[i] = 0;
  if (threadIdx.x == 0) {
    if (search.source != NONE) search.parent[search.source] = NONE;
    for (int i = 0; i < 2; i++) {
      rank.control->visits[i] = Counters{};
      rank.control->noted[i] = Noted{};
    }
  }
}

// Tell the others of the delegates that were found: what is in `now` and not in `kept`. most: at most
// so many of them.
template <class Offset, class Distance>
__device__ __noinline__ void write_delegates(const DelegateRank<Offset, Distance> &rank,
                                             const u32 *now, const u32 *kept, u32 *entered, Share share,
                                             u32 parity, u64 most, const Lines &changed) {
  const Stretches told = stretches_of(share, rank.region, rank.delegate_words);
  u32 *bitmap = rank.mail[parity];
  const u64 words = told.words();
  Outgoing mail = {0, nullptr, bitmap + rank.delegate_words,
                   rank.sent + parity * (rank.ranks + 1) + rank.ranks,
                   share == OTHER_DELEGATES || most <= LISTED * words};
  mail.most = (u32)words;
  mail.mapping = most > words;
  post_no_list(mail);
  for (const Region &part : told.part) {
    mail.before = part.begin;
    mail.words = part.end - part.begin;
    mail.bitmap = bitmap + part.begin;
    write_mail(now + part.begin, kept + part.begin, entered ? entered + part.begin : nullptr,
               rank.found_here + part.begin, mail, Sharing::of_grid(),
               [&](u32 w) { return changed.has(part.begin + w); });
  }
}

// Tell each owner of the ghosts that were found.
template <class Offset, class Distance>
__device__ __noinline__ void write_ghosts(const DelegateRank<Offset, Distance> &rank,
                                          const u32 *visited, u32 *kept, u32 parity, u64 most, const Lines &changed) {
  u32 *mail = rank.mail[parity] + 2 * rank.delegate_words;
  const Sharers sharers = Sharers::of(rank.ranks - 1);
  for (u32 k = sharers.first; k + 1 < rank.ranks; k += sharers.step) {
    const u32 i = k + (k >= rank.rank);
    const Peer &owner = rank.peers[i];
    const u32 at = owner.own_ghosts_at, first = rank.own_words + at;
    Outgoing ghosts = {owner.own_ghost_words, mail + at, mail + rank.ghost_words + at,
                       rank.sent + parity * (rank.ranks + 1) + i, true};
    ghosts.mapping = most > owner.own_ghost_words;
    write_mail(visited + first, kept + first, kept + first, nullptr, ghosts, sharers.sharing(),
               [&](u32 w) { return changed.has(first + w); });
  }
}

// Enter what the others have found. second: round of the superstep.
template <class Offset, class Distance>
__device__ __noinline__ void receive(const DelegateRank<Offset, Distance> &rank, u32 *visited,
                                     u32 level, u32 parity, bool second, const Lines &changed) {
  const Sharers sharers = Sharers::of(rank.ranks - 1);
  const u32 thread = sharers.thread, threads = sharers.threads;
  for (u32 i = sharers.first; i + 1 < rank.ranks; i += sharers.step) {
    const u32 sender = (rank.rank + 1 + i) % rank.ranks;  // not all read from one
    const Peer &peer = rank.peers[sender];
    const Arrival &arrival = rank.arrivals[2 * sender + parity];
    const u32 delegates = far_load(&arrival.delegates), ghosts = far_load(&arrival.ghosts);
    const Share share = share_of(second, far_load(&arrival.again));
    const Stretches told = stretches_of(share, peer.region, rank.delegate_words);
    const u32 *mail = peer.mail[parity];
    if (delegates > told.words()) {
      for (const Region &part : told.part) {
        auto enter = [&](u32 w, u32 theirs) { atomicOr(&visited[part.begin + w], theirs); };
        const u32 words = part.end - part.begin;
        read_bitmap(mail + part.begin, words, sharers, enter, changed, part.begin);
      }
    } else {
      for (u32 k = thread; k < delegates; k += threads) {
        const u32 vertex = far_load(mail + rank.delegate_words + k);
        if (has(visited, vertex)) continue;
        atomicOr(&visited[vertex >> 5], 1u << (vertex & 31));
        changed.mark(vertex);
      }
    }
    if (!ghosts) continue;
    mail += 2 * rank.delegate_words + peer.ghosts_at;
    auto take = [&](const bool(&mine)[AT_ONCE], const u32(&ghost)[AT_ONCE]) {
      u32 vertex[AT_ONCE];
#pragma unroll
      for (int k = 0; k < AT_ONCE; k++) {
        vertex[k] = mine[k] ? peer.vertex[ghost[k]] : NONE;
        if (mine[k]) changed.mark(vertex[k]);
      }
      enter_found<true>(mine, ghost, vertex, peer.parent, peer.wanted, rank.search, visited, level);
    };
    read_mail(mail, mail + peer.all_ghost_words, ghosts, peer.ghost_words, sharers, take);
  }
}

// What one thread counts of what is new.
struct NotedTally {
  u32 normals;
  u32 delegates;
  u32 with_rows;

  // Called by whole blocks.
  __device__ void add_to(Noted &noted) const {
    u64 *const to[3] = {&noted.normals, &noted.delegates, &noted.with_rows};
    add_sums({normals, delegates, with_rows}, to);
  }
};

// Give what is new its distance (of delegates those that this rank owns; of normal vertices where
// they were `pushed`: a pull sees to them), count it, make it the frontier; `enqueueing`: unless
// there is too much of it, queue it.
template <class Offset, class Distance>
__device__ __noinline__ NotedTally note_new(const Graph<Offset> &graph,
                                            const DelegateRank<Offset, Distance> &rank, u32 level,
                                            bool pushed, bool enqueueing, Enqueue<Offset> queue) {
  const Lines &changed = rank.changed[level % 3], &earlier = rank.changed[(level + 2) % 3];
  const Search<Offset, Distance> &search = rank.search;
  NotedTally tally = {};
  const Sharing sharing = Sharing::of_grid();
  for (u32 turn = 0; sharing.any(turn, rank.own_words); turn++) {
    const u32 first = sharing.first(turn);
    const bool inside = first < rank.own_words, mine = inside && changed.has(first);
    const bool stale = inside && earlier.has(first);  // the frontier has what is over
    if (!__any_sync(ALL, mine || stale)) continue;
    u32 now[EACH_LANE], old[EACH_LANE], fresh[EACH_LANE];
    load_words(now, search.visited[0], first, mine ? rank.own_words : 0);
    load_words(old, search.visited[1], first, mine ? rank.own_words : 0);
    u32 any = 0;
#pragma unroll
    for (int i = 0; i < EACH_LANE; i++) {
      fresh[i] = now[i] & ~old[i];
      any |= fresh[i];
      const u32 w = first + i, last = graph.vertices >> 5;
      const u32 below = w < last ? ALL : w == last ? (1u << (graph.vertices & 31)) - 1 : 0;
      tally.with_rows += __popc(fresh[i] & below);
      (w < rank.delegate_words ? tally.delegates : tally.normals) += __popc(fresh[i]);
    }
    if (mine || stale) store_words(rank.frontier, first, fresh);
    if (any) store_words(search.visited[1], first, now);
    if (!__any_sync(ALL, any)) continue;
#pragma unroll
    for (int i = 0; i < EACH_LANE; i++) {
      if (first < rank.delegate_words ? rank.region.has(first) : pushed)
        set_distances(search.distance, first + i, fresh[i], old[i], level);
      if (enqueueing &&
          __shfl_sync(ALL, QUEUED_VERTICES(__ldcg(queue.queued)), 0) <= search.enqueue_edges)
        enqueue(graph, first + i, fresh[i], queue);
    }
  }
  if (queue.count) queue.flush();
  set_all(rank, rank.changed[(level + 1) % 3], 0);
  return tally;
}
