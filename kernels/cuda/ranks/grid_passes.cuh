// Passes of a rank in a grid over what it knows: before a search, and as rounds of mail end.
#include "ranks/frontier.cuh"
#include "ranks/grid.cuh"

// A search that begins: nothing but its source is visited, where this rank has it.
template <class Offset, class Distance>
__device__ void begin(const GridRank<Offset, Distance> &rank) {
  const Search<Offset, Distance> &search = rank.search;
  for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < rank.words;
       i += gridDim.x * blockDim.x) {
    search.visited[0][i] = i == search.source >> 5 ? 1u << (search.source & 31) : 0;
    search.visited[1][i] = 0;
    if (i < rank.own_words) rank.told[i] = 0;
  }
  if (blockIdx.x) return;
  for (u32 i = threadIdx.x; i < 2 * rank.segment_count; i += blockDim.x) rank.sent[i] = 0;
  if (threadIdx.x == 0) {
    if (search.source != NONE) search.parent[search.source] = NONE;
    for (int i = 0; i < 2; i++) {
      rank.control->visits[i] = Counters{};
      rank.control->noted[i] = Weights{};
    }
  }
}

// Mail about a partition, in this rank's memory.
template <class Offset, class Distance>
__device__ inline Outgoing mail_of(const GridRank<Offset, Distance> &rank, u32 segment, u32 parity,
                                   bool listing) {
  const Segment &part = rank.segments[segment];
  u32 *bitmap = rank.mail[parity] + part.at;
  return {part.words, bitmap, bitmap + rank.words,
          rank.sent + parity * rank.segment_count + segment, listing};
}

// Write what is in `now` and not in `before`, and enter it there.
__device__ inline void write_and_enter(const u32 *now, u32 *before, const Outgoing &mail) {
  post_no_list(mail);
  write_mail(now, before, before, nullptr, mail, Sharing::of_grid(), [](u32) { return true; });
}

// For the ranks of the grid row: which own vertices have been visited since they were told last.
template <class Offset, class Distance>
__device__ __noinline__ void tell_rows(const GridRank<Offset, Distance> &rank, u32 parity,
                                       bool listing) {
  for (u32 s = 0; s < rank.own_segments; s++) {
    const u32 at = rank.segments[s].at;
    write_and_enter(rank.search.visited[0] + at, rank.told + at,
                    mail_of(rank, s, parity, listing));
  }
}

// For the owners of other ranks' vertices: which of them this superstep has found.
template <class Offset, class Distance>
__device__ __noinline__ void tell_owners(const GridRank<Offset, Distance> &rank, bool pulled,
                                         u32 parity, bool listing) {
  u32 *visited = rank.search.visited[0], *kept = rank.search.visited[1];
  for (u32 s = rank.own_segments; s < rank.segment_count; s++) {
    const Segment &part = rank.segments[s];
    if (!(pulled ? part.in_columns : part.in_rows)) continue;
    write_and_enter(visited + part.at, kept + part.at, mail_of(rank, s, parity, listing));
  }
}

// Enter what owners have told of their vertices: they are visited and, where `frontier` is given,
// in it.
template <class Offset, class Distance>
__device__ __noinline__ void learn(const GridRank<Offset, Distance> &rank, Kind kind, u32 parity,
                                   u32 *frontier) {
  const Sharers sharers = Sharers::of(rank.letter_counts[kind]);
  u32 *visited = rank.search.visited[0], *kept = rank.search.visited[1];
  for (u32 l = sharers.first; l < rank.letter_counts[kind]; l += sharers.step) {
    const Letter &letter = rank.letters[kind][l];
    const u32 *mail = letter.mail[parity];
    const u32 count = far_load(letter.count[parity]), at = letter.at;
    if (count > letter.words) {  // nobody else writes these words
      read_bitmap(mail, letter.words, sharers, [&](u32 w, u32 theirs) {
        visited[at + w] |= theirs;
        kept[at + w] |= theirs;
        if (frontier) frontier[at + w] = theirs;
      });
      continue;
    }
    for (u32 k = sharers.thread; k < count; k += sharers.threads) {
      const u32 place = far_load(mail + letter.to_list + k), bit = 1u << (place & 31);
      const u32 w = at + (place >> 5);
      atomicOr(&visited[w], bit);
      atomicOr(&kept[w], bit);
      if (frontier) atomicOr(&frontier[w], bit);
    }
  }
}

// Enter own vertices that others have found.
template <class Offset, class Distance>
__device__ __noinline__ void take_found(const GridRank<Offset, Distance> &rank, Kind kind,
                                        u32 parity, u32 level) {
  const Sharers sharers = Sharers::of(rank.letter_counts[kind]);
  for (u32 l = sharers.first; l < rank.letter_counts[kind]; l += sharers.step) {
    const Letter &letter = rank.letters[kind][l];
    const u32 count = far_load(letter.count[parity]);
    auto take = [&](const bool(&mine)[AT_ONCE], const u32(&place)[AT_ONCE]) {
      u32 vertex[AT_ONCE];
#pragma unroll
      for (int k = 0; k < AT_ONCE; k++) vertex[k] = mine[k] ? letter.at * 32 + place[k] : NONE;
      enter_found<false>(mine, place, vertex, letter.parent, letter.wanted, rank.search,
                         rank.search.visited[0], level);
    };
    const u32 *mail = letter.mail[parity];
    if (count) read_mail(mail, mail + letter.to_list, count, letter.words, sharers, take);
  }
}

// Add up the edges of the vertices of a word for each lane. Called by whole warps.
template <class Offset>
__device__ inline void weigh(const Graph<Offset> &graph, u32 w, u32 fresh, Weights &weights) {
  for (u32 open = __ballot_sync(ALL, fresh != 0); open; open &= open - 1) {
    const int lane = __ffs(open) - 1;
    const u32 vertex = __shfl_sync(ALL, w, lane) * 32 + lane_id();
    if (!(__shfl_sync(ALL, fresh, lane) >> lane_id() & 1)) continue;
    weights.found++;
    if (vertex >= graph.vertices) continue;
    const u64 leaving = graph.offsets[vertex + 1] - graph.offsets[vertex];
    u64 entering = leaving;
    if (graph.reverse_offsets != graph.offsets)
      entering = graph.reverse_offsets[vertex + 1] - graph.reverse_offsets[vertex];
    weights.forward += leaving;
    weights.edges += entering;
    weights.rows += entering != 0;
  }
}

// Add a number of each lane to a counter.
__device__ inline void add_warp_sum(u64 value, u64 &counter) {
  for (int step = 16; step; step >>= 1) value += __shfl_xor_sync(ALL, value, step);
  if (lane_id() == 0 && value) atomicAdd(&counter, value);
}

// Give own vertices that are new their distance, weigh them, make them the frontier, and write that
// as mail for the other ranks of their grid columns.
template <class Offset, class Distance>
__device__ __noinline__ void note_found(const Graph<Offset> &graph,
                                        const GridRank<Offset, Distance> &rank, u32 level,
                                        u32 parity, bool listing, Weights &noted) {
  const Search<Offset, Distance> &search = rank.search;
  Weights own = {};
  for (u32 i = rank.own_words + blockIdx.x * blockDim.x + threadIdx.x; i < rank.row_words;
       i += gridDim.x * blockDim.x)
    rank.frontier[i] = 0;
  for (u32 s = 0; s < rank.own_segments; s++) {
    const u32 at = rank.segments[s].at;
    const Outgoing mail = mail_of(rank, s, parity, listing);
    if (rank.grid_rows > 1) post_no_list(mail);
    u32 *kept = search.visited[1] + at;
    const Sharing sharing = Sharing::of_grid();
    for (u32 turn = 0; sharing.any(turn, mail.words); turn++) {
      const u32 first = sharing.first(turn);
      u32 now[EACH_LANE], old[EACH_LANE], fresh[EACH_LANE], any = 0;
      load_words(now, search.visited[0] + at, first, mail.words);
      load_words(old, kept, first, mail.words);
#pragma unroll
      for (int i = 0; i < EACH_LANE; i++) {
        fresh[i] = now[i] & ~old[i];
        any |= fresh[i];
        set_distances(search.distance, at + first + i, fresh[i], old[i], level);
      }
      if (first < mail.words) {
        store_words(rank.frontier + at, first, fresh);
        if (any) store_words(kept, first, now);
      }
      if (rank.grid_rows > 1) post(fresh, first, mail);
      if (!__any_sync(ALL, any)) continue;
#pragma unroll
      for (int i = 0; i < EACH_LANE; i++) weigh(graph, at + first + i, fresh[i], own);
    }
  }
  add_warp_sum(own.found, noted.found);
  add_warp_sum(own.forward, noted.forward);
  add_warp_sum(own.edges, noted.edges);
  add_warp_sum(own.rows, noted.rows);
}
