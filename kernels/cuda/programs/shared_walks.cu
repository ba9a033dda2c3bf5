// PageRank by ranks that have shares of the edges: iterations as of pagerank.cuh, whose vertices are dealt out.
#include "programs/meeting.cuh"
#include "programs/pagerank.cuh"

// What has come, for others to add theirs.
struct Write {
  double *came;

  template <u32 MANY>
  __device__ void operator()(const u32 (&vertex)[MANY], const double (&sum)[MANY]) const {
#pragma unroll
    for (u32 k = 0; k < MANY; k++)
      if (vertex[k] != NONE) came[vertex[k]] = sum[k];
  }
};

// Ranks that have shares of the edges, and cannot read each other's memory: an iteration is two launches,
// between which they add up what has come: of each vertex, from walk.shares[0], to `came`.
template <class In, class Operator, class Share, int THREADS, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS)
    gather_shares(const __grid_constant__ In in, const Operator along, const Walk<Share> walk, double *came) {
  const Share *share = walk.shares[0];
  gather_all(in, along, share, &walk.control->arrived, Write{came});
}

// Then vertices from `first` on, so many, advance by what has come to them: next, came: of these alone.
// walk.block_sums: receives the change, and what is lost, of each block.
template <class Share, int THREADS, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS)
    advance_part(const Walk<Share> walk, u32 first, u32 count, double anywhere, const double *came,
                 Share *next) {
  Pair moved = {0, 0};
  FOR_ITEMS(i, count) {
    const u32 vertex = first + (u32)i;
    const double before = walk.shares[0][vertex], degree = walk.degree[vertex];
    next[i] = advance(walk, before, degree, anywhere, vertex, came[i], moved);
  }
  moved = block_sum(moved);
  if (threadIdx.x == 0) walk.block_sums[blockIdx.x] = moved;
}

// Bits of a share of the edges, by vertex: whether its row has entries, and whether any lead to it.
template <class Offset, bool TIERED, int THREADS, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS)
    mark_entries(const __grid_constant__ Rows<Offset> rows, u32 *has_any, u32 *is_target) {
  FOR_STRIPS(strip, (rows.rows + 31) / 32) {
    const u32 v = 32 * strip + lane_id();
    const u32 bits = __ballot_sync(ALL, v < rows.rows && entries_of(rows, v).count());
    if (lane_id() == 0) has_any[strip] = bits;
  }
  visit_rows(rows, whole_grid(), [&](u32, Entries, Entries some, u32 lane, u32 width) {
    for (u64 e = some.begin + lane; e < some.end; e += width) {
      const u32 target = entry_once<TIERED>(rows.targets, e);
      if (!has_bit(is_target, target)) atomicOr(is_target + target / 32, 1u << target % 32);
    }
  });
}

// What a rank has to do with a vertex, in bits: its own bit says that it *owns* the vertex, those of others that it
// tells them its share; and whether the row is split. Of a vertex of another rank, whose row is not, nothing.
#define SPLIT 0x80000000u

// One rank owns a vertex: that which alone has entries in its row, or else any. marks: of each rank, in bits of
// vertices, has_any and is_target of `mark_entries`. counts: how often shares are told; how many rows are split, of
// any rank.
template <int THREADS, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS)
    find_roles(const u32 *marks, u32 vertices, u32 rank, u32 ranks, u32 *roles, u64 *counts) {
  const u64 words = (vertices + 31) / 32;
  FOR_STRIPS(strip, words) {
    const u32 v = 32 * strip + lane_id();
    u32 parts = 0, owner = strip % ranks, readers = 0;
    for (u32 peer = 0; peer < ranks; peer++) {
      const u32 *const of = marks + 2 * words * peer;
      readers |= (u32)has_bit(of + words, v) << peer;
      if (has_bit(of, v) && parts++ == 0) owner = peer;
    }
    if (parts > 1) owner = strip % ranks;
    const u32 told = owner == rank ? readers & ~(1u << rank) : 0;
    const u32 sums[] = {warp_sum(__popc(told)), warp_sum(parts > 1)};
    if (lane_id() < 2 && sums[lane_id()]) atomicAdd(counts + lane_id(), (u64)sums[lane_id()]);
    if (v < vertices) roles[v] = (owner == rank ? told | 1u << rank : 0) | (parts > 1 ? SPLIT : 0);
  }
}

// Ranks that have shares of the edges, and each other's memory. An own vertex whose row stands in its owner's share
// advances once that is added up, and those who read its share are told at once. Of rows that are split each rank
// adds up its part; when all have, owners add up these. By rank: came, by its part of split rows; shares, of both
// turns. own_split: a list.
template <class Share>
struct Shared {
  double *const *came;
  double *own_came;
  Share *const *shares[2];
  const u32 *roles;
  const u32 *own_split;
  Meeting meeting;
  u32 vertices;
  u32 own_splits;
  u32 splits;  // whether there are any, of whatever rank

  __device__ void tell(u32 turn, u32 role, u32 vertex, Share now) const {
    for (u32 peers = role & ~SPLIT; peers; peers &= peers - 1)
      shares[turn][__ffs(peers) - 1][vertex] = now;
  }
};

// All blocks of all ranks meet; the sums of what they have said, in their order, into control. Whether the
// walk goes on. sums: of blocks, to tell; null: nothing. over: whether this rank's time is.
__device__ inline bool meet_all(const Meeting &meeting, Control &control, const Pair *sums, u32 over) {
  __threadfence_system();
  grid_barrier(&control.arrived);
  if (blockIdx.x == 0) {
    const Pair own = sums ? sum_of_blocks(sums) : Pair{0, 0};
    const u64 round = control.round + 1;
    const u64 said[SAID] = {(u64)__double_as_longlong(own.one), (u64)__double_as_longlong(own.other), over};
    const bool all = meet(meeting, round, said);
    if (threadIdx.x == 0) {
      Pair sum = {0, 0};
      u64 any = 0;
      for (u32 peer = 0; peer < meeting.ranks; peer++) {
        const u64 *told = meeting.of(peer, round)->said;
        const long long change = far_load(told), lost = far_load(told + 1);
        sum += {__longlong_as_double(change), __longlong_as_double(lost)};
        any |= far_load(told + 2);
      }
      control.round = round, control.stopped = !all, control.stop = any != 0;
      control.change = sum.one, control.lost = sum.other;
    }
  }
  grid_barrier(&control.arrived);
  return !__ldcg(&control.stopped);
}

// Many iterations of such ranks, of which all do as many.
template <class In, class Operator, class Share, int THREADS, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS)
    pagerank_shares(const __grid_constant__ In in, const Operator along, const Walk<Share> walk,
                    const __grid_constant__ Shared<Share> shared) {
  Control &control = *walk.control;
  const u32 rank = shared.meeting.rank, ranks = shared.meeting.ranks;
  const u64 launched = clock64();
  double lost = control.lost;
  u32 turn = control.turn, done = 0;
  while (done < walk.iterations) {
    const u64 began = clock64();
    // (As arguments of the launch name it: what a table names may be any kind of memory, and takes longer to read.)
    const Share *const share = turn ? walk.shares[1] : walk.shares[0];
    turn ^= 1;  // these are written from here on; who read them has met all others since
    const double anywhere = 1 - walk.damping + walk.damping * lost;
    Pair moved = {0, 0};
    gather_all(in, along, share, &control.arrived, [&](const auto &vertices, const auto &came) {
      const u32 MANY = sizeof vertices / sizeof *vertices;
      u32 role[MANY], whole[MANY];
#pragma unroll
      for (u32 k = 0; k < MANY; k++) role[k] = vertices[k] == NONE ? 0 : __ldg(shared.roles + vertices[k]);
#pragma unroll
      for (u32 k = 0; k < MANY; k++) {
        whole[k] = role[k] && !(role[k] & SPLIT) ? vertices[k] : NONE;
        if (role[k] & SPLIT) shared.own_came[vertices[k]] = came[k];
      }
      auto put = [&](u32 k, Share now) { shared.tell(turn, role[k], vertices[k], now); };
      advance_some(walk, share, anywhere, whole, came, moved, put);
    });
    if (shared.splits) {
      if (!meet_all(shared.meeting, control, nullptr, 0)) return;
      FOR_ITEMS(i, shared.own_splits) {
        const u32 vertex = shared.own_split[i];
        double sum = 0;
        for (u32 peer = 0; peer < ranks; peer++) sum += far_load(shared.came[peer] + vertex);
        const Share now = advance(walk, share[vertex], walk.degree[vertex], anywhere, vertex, sum, moved);
        shared.tell(turn, shared.roles[vertex], vertex, now);
      }
    }
    moved = block_sum(moved);
    if (threadIdx.x == 0) walk.block_sums[blockIdx.x] = moved;
    if (!meet_all(shared.meeting, control, walk.block_sums, began - launched >= walk.time)) return;
    lost = __ldcg(&control.lost);
    const double change = __ldcg(&control.change);
    if (first_item() == 0) walk.changes[done] = change, walk.clocks[done] = clock64() - began;
    done++;
    if (change < walk.tolerance || __ldcg(&control.stop)) break;
  }
  if (first_item() == 0) control.done = done, control.turn = turn;
  // The first rank has all at the end, also what it does not read.
  FOR_ITEMS(v, shared.vertices) {
    const u32 role = shared.roles[v];
    if (role >> rank & 1 && !(role & 1)) shared.tell(turn, 1, v, shared.shares[turn][rank][v]);
  }
}
