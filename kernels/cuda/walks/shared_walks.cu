// PageRank by ranks that have shares of the edges: iterations as of pagerank.cuh, whose vertices are dealt out.
#include "programs/meeting.cuh"
#include "walks/pagerank.cuh"

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
  gather_all(in, along, InOrder<Share>{walk.shares[0]}, &walk.control->arrived, Write{came});
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

// What a rank has to do with a vertex, its *role*, in bits: its own bit says that it *owns* the vertex, those of others
// that it tells them its share; and whether the row is split. 0: nothing.
#define SPLIT 0x80000000u

// marks: of each rank, in bits of vertices, has_any and is_target of `mark_entries`. One rank owns a vertex: that which
// alone has entries in its row, or else any.
__device__ inline u32 role_of(const u32 *marks, u32 vertices, u32 rank, u32 ranks, u32 vertex) {
  const u64 words = (vertices + 31) / 32;
  u32 parts = 0, owner = 0, readers = 0;
  for (u32 peer = 0; peer < ranks; peer++) {
    const u32 *const of = marks + 2 * words * peer;
    readers |= (u32)has_bit(of + words, vertex) << peer;
    if (has_bit(of, vertex)) owner = peer, parts++;
  }
  if (parts != 1) owner = vertex % ranks;
  const u32 split = parts > 1 ? SPLIT : 0;
  if (owner == rank) return readers | 1u << rank | split;
  return has_bit(marks + 2 * words * rank, vertex) ? split : 0;
}

__device__ inline bool splits_own(u32 role, u32 rank) { return role & SPLIT && role >> rank & 1; }

// listed, own_splits: of the vertices before each 32, and an end, how many have a role, and how many own ones a row
// that is split; here of these 32 alone, at the place of the next ones. told: how often others are told a share.
template <int THREADS, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS)
    count_roles(const u32 *marks, u32 vertices, u32 rank, u32 ranks, u32 *listed, u32 *own_splits, u64 *told) {
  FOR_STRIPS(strip, (vertices + 31) / 32) {
    const u32 v = 32 * strip + lane_id(), role = v < vertices ? role_of(marks, vertices, rank, ranks, v) : 0;
    const u32 some = __popc(__ballot_sync(ALL, role != 0)), splits = __popc(__ballot_sync(ALL, splits_own(role, rank)));
    const u32 peers = warp_sum(__popc(role & ~(SPLIT | 1u << rank)));
    if (lane_id() == 0) {
      listed[strip + 1] = some, own_splits[strip + 1] = splits;
      if (peers) atomicAdd(told, (u64)peers);
    }
  }
}

// A vertex, and its role.
struct __align__(8) OwnRow {
  u32 vertex, role;
};

// The rows of vertices that have a role, and where their entries begin: what is between has none. own_split: which
// of these rows are split, and their vertices own ones. Others as of `count_roles`.
template <class Offset, int THREADS, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS)
    list_rows(const u32 *marks, u32 vertices, u32 rank, u32 ranks, const u32 *listed, const u32 *own_splits,
              const Offset *offsets, OwnRow *rows, Offset *row_offsets, u32 *own_split) {
  FOR_STRIPS(strip, (vertices + 31) / 32) {
    const u32 v = 32 * strip + lane_id(), role = v < vertices ? role_of(marks, vertices, rank, ranks, v) : 0;
    const u32 some = __ballot_sync(ALL, role != 0), splits = __ballot_sync(ALL, splits_own(role, rank));
    const u32 row = listed[strip] + __popc(some & lanes_before());
    if (role) rows[row] = {v, role}, row_offsets[row] = offsets[v];
    if (splits_own(role, rank)) own_split[own_splits[strip] + __popc(splits & lanes_before())] = row;
  }
}

// Ranks that have shares of the edges, and each other's memory. An own vertex whose row stands in its owner's share
// advances once that is added up, and those who read its share are told at once. Of rows that are split each rank
// adds up its part; when all have, owners add up these. By rank: came, by its part of split rows, 0 always where it has
// no entries of one; shares, of both turns: both as vertices are dealt out. rows, own_split: as of `list_rows`.
template <class Share>
struct Shared {
  double *const *came;
  double *own_came;
  Share *const *shares[2];
  const OwnRow *rows;
  const u32 *own_split;
  Meeting meeting;
  Dealing dealing;
  u32 listed;  // rows
  u32 own_splits;
  u32 splits;  // whether there are any, of whatever rank

  __device__ void tell(u32 turn, const OwnRow &row, Share now) const {
    for (u32 peers = row.role & ~SPLIT; peers; peers &= peers - 1)
      shares[turn][__ffs(peers) - 1][dealing.place(row.vertex)] = now;
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
    const Dealt<Share> share{turn ? walk.shares[1] : walk.shares[0], shared.dealing};
    turn ^= 1;  // these are written from here on; who read them has met all others since
    const double anywhere = 1 - walk.damping + walk.damping * lost;
    Pair moved = {0, 0};
    gather_all(in, along, share, &control.arrived, [&](const auto &places, const auto &came) {
      const u32 MANY = sizeof places / sizeof *places;
      OwnRow row[MANY];
      u32 whole[MANY];
#pragma unroll
      for (u32 k = 0; k < MANY; k++) row[k] = places[k] == NONE ? OwnRow{NONE, 0} : shared.rows[places[k]];
#pragma unroll
      for (u32 k = 0; k < MANY; k++) {
        whole[k] = row[k].role & SPLIT ? NONE : row[k].vertex;
        if (row[k].role & SPLIT) shared.own_came[shared.dealing.place(row[k].vertex)] = came[k];
      }
      auto put = [&](u32 k, Share now) { shared.tell(turn, row[k], now); };
      advance_some(walk, share, anywhere, whole, came, moved, put);
    });
    if (shared.splits) {
      if (!meet_all(shared.meeting, control, nullptr, 0)) return;
      FOR_ITEMS(i, shared.own_splits) {
        const OwnRow row = shared.rows[shared.own_split[i]];
        const u32 vertex = row.vertex;
        double sum = 0;
        for (u32 peer = 0; peer < ranks; peer++) sum += far_load(shared.came[peer] + shared.dealing.place(vertex));
        shared.tell(turn, row, advance(walk, share[vertex], walk.degree[vertex], anywhere, vertex, sum, moved));
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
  FOR_ITEMS(i, shared.listed) {
    const OwnRow row = shared.rows[i];
    if (row.role >> rank & 1 && !(row.role & 1))
      shared.tell(turn, {row.vertex, 1}, shared.shares[turn][rank][shared.dealing.place(row.vertex)]);
  }
}
