// PageRank: pipeline/algorithms/pagerank.py says what is computed, kernels/pieces/walk.py how on a CPU.
// An iteration gathers shares along all rows and makes new ones of them; a launch does many of them, and
// the grid meets once in each, and once more where rows are cut, and where they stand in columns.
//
// A share is read for each entry, and from anywhere. Where that is what takes the time, entries stand by tiles
// (programs/tiles.cuh), or rows are cut into columns of targets whose shares the second-level cache holds, one
// column after the other (Beamer, Asanovic, Patterson: Reducing Pagerank Communication via Propagation
// Blocking, IPDPS 2017, section III). Shares are floats of 64 bits, or of 32, of which a cache holds twice as
// many; what is made of them is added up in 64 bits.
#include "programs/meeting.cuh"
#include "programs/rows.cuh"
#include "programs/sums.cuh"
#include "programs/tiles.cuh"

#define TOGETHER 4  // entries of a lane whose loads are under way at once
#define BESIDE 2    // vertices of which these are

// What an edge makes of the value at its end (kernels/pieces/operators.py). Two: edges of an entry and of the
// next one, or of one alone.
struct Sum {
  struct Two {
    __device__ double first(double value) const { return value; }
    __device__ double other(double value) const { return value; }
  };
  const void *weights;

  __device__ double along(double value, u64) const { return value; }
  __device__ Two one(u64) const { return {}; }
  __device__ Two two(u64) const { return {}; }
};

template <class Weight>
struct WeightedSum {
  struct __align__(8) Two {
    Weight weight, next;

    __device__ double first(double value) const { return value * weight; }
    __device__ double other(double value) const { return value * next; }
  };
  const Weight *weights;

  __device__ double along(double value, u64 entry) const { return value * __ldg(weights + entry); }
  __device__ Two one(u64 entry) const { return {__ldg(weights + entry), 0}; }
  __device__ Two two(u64 entry) const { return *(const Two *)(weights + entry); }  // an even number
};

struct Control {
  u64 arrived;
  double lost;    // what vertices without edges hold
  double change;  // of the last iteration, in L1
  u32 done;       // iterations, of this launch
  u32 turn;       // which of the shares are the current ones
  u32 stop;       // after which of them: the time of the launch is over then
  u32 stopped;    // whether another rank has failed
  u64 round;      // of meetings with other ranks, the last one
};

// degree: of a vertex the edges that leave it, or their weights added up. shares: what each carries, by
// its weight; of vertices without any, all that they have. likely: how likely a walk is at each vertex
// when it teleports; null: `even` at all. block_sums: twice of each block. changes, clocks: of each iteration
// of this launch. iterations: at most. time: of the launch, in clocks, about.
template <class Share>
struct Walk {
  const double *degree;
  Share *shares[2];
  const double *likely;
  Pair *block_sums;
  Control *control;
  double *changes;
  u64 *clocks;
  double damping;
  double even;
  double tolerance;  // less than 0 where there is none
  u64 time;
  u32 iterations;
  u32 keeps;  // whether walks teleport from vertices without edges, rather than end there
};

// Rows, whose targets may stand in two tiers. columns: of `dense` rows each, those of the first vertices;
// after them come the rows of all others. part_sums, column_sums: of parts of rows, and of rows that are one
// column's.
template <class Offset, bool TIERED>
struct InRows {
  Rows<Offset> rows;
  double *part_sums;
  double *column_sums;
  u32 dense;
  u32 columns;
};

template <bool TIERED, class Offset, class Operator, class Share>
__device__ inline double gather(const Rows<Offset> &rows, const Operator &along, const Share *share,
                                Entries entries, u32 lane, u32 width) {
  double sum = 0;
  for (u64 e = entries.begin + lane; e < entries.end; e += (u64)TOGETHER * width) {
    u32 target[TOGETHER];
    double value[TOGETHER];
#pragma unroll
    for (u32 k = 0; k < TOGETHER; k++)
      target[k] = e + k * width < entries.end ? entry_once<TIERED>(rows.targets, e + k * width) : NONE;
#pragma unroll
    for (u32 k = 0; k < TOGETHER; k++)
      value[k] = target[k] == NONE ? 0 : along.along(share[target[k]], e + k * width);
#pragma unroll
    for (u32 k = 0; k < TOGETHER; k++) sum += value[k];
  }
  return lanes_sum(sum, width);
}

// The share that what came to a vertex makes of the one before; adds to the change, and to what is lost.
template <class Share>
__device__ inline Share advance(const Walk<Share> &walk, double before, double degree, double anywhere,
                                u32 vertex, double came, Pair &moved) {
  const double shares = degree == 0 ? 1 : degree;
  const double rank = walk.damping * came + anywhere * (walk.likely ? walk.likely[vertex] : walk.even);
  const Share now = rank / shares;
  moved += {fabs(rank - before * shares), walk.keeps && degree == 0 ? now : 0};
  return now;
}

// The same of several vertices, whose loads are under way at once; NONE is none. Calls `put(k, share)`.
template <u32 MANY, class Share, class Put>
__device__ inline void advance_some(const Walk<Share> &walk, const Share *share, double anywhere,
                                    const u32 (&vertex)[MANY], const double (&came)[MANY], Pair &moved, Put put) {
  double before[MANY], degree[MANY];
#pragma unroll
  for (u32 k = 0; k < MANY; k++) {
    const bool any = vertex[k] != NONE;
    before[k] = any ? share[vertex[k]] : 0, degree[k] = any ? walk.degree[vertex[k]] : 0;
  }
#pragma unroll
  for (u32 k = 0; k < MANY; k++)
    if (vertex[k] != NONE)
      put(k, advance(walk, before[k], degree[k], anywhere, vertex[k], came[k], moved));
}

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

template <class Give>
__device__ inline void give_one(Give &give, u32 vertex, double came) {
  const u32 vertices[] = {vertex};
  const double all[] = {came};
  give(vertices, all);
}

// Call `give(vertices, came)` with all that comes to each, once, some at a time; NONE is none. Called by the
// whole grid. arrived: of its barrier.
template <class Offset, bool TIERED, class Operator, class Share, class Give>
__device__ inline void gather_all(const InRows<Offset, TIERED> &in, const Operator &along, const Share *share,
                                  u64 *arrived, Give give) {
  const Rows<Offset> &rows = in.rows;
  const Crew crew = whole_grid();
  const u64 cut = (u64)in.columns * in.dense;
  auto settle = [&](u32 row, double came) {
    if (row < cut)
      __stcs(in.column_sums + row, came);
    else
      give_one(give, (u32)(row - cut) + in.dense, came);
  };
  for (u32 unit = crew.warp; unit < rows.parts + rows.turns; unit += crew.warps) {
    if (unit < rows.parts) {
      const Entries entries = entries_of_part(rows, unit, place_of(rows, unit));
      const double sum = gather<TIERED>(rows, along, share, entries, lane_id(), 32);
      if (lane_id() == 0) in.part_sums[unit] = sum;
      continue;
    }
    visit_turn(rows, unit - rows.parts, [&](u32 row, Entries entries, u32 lane, u32 width) {
      const double came = gather<TIERED>(rows, along, share, entries, lane, width);
      if (row != NONE && lane == 0) settle(row, came);
    });
  }
  if (rows.longs) {
    grid_barrier(arrived);
    for (u32 place = crew.warp; place < rows.longs; place += crew.warps) {
      const u32 last = rows.first_parts[place + 1];
      double came = 0;
      for (u32 part = rows.first_parts[place] + lane_id(); part < last; part += 32)
        came += __ldcg(in.part_sums + part);
      came = lanes_sum(came);
      if (lane_id() == 0) settle(rows.long_rows[place], came);
    }
  }
  if (cut) {
    grid_barrier(arrived);
    FOR_ITEMS(v, in.dense) {
      double came = 0;
      for (u32 column = 0; column < in.columns; column++)
        came += __ldcs(in.column_sums + (u64)column * in.dense + v);
      give_one(give, (u32)v, came);
    }
  }
}

// The same of rows whose entries stand by tiles.
template <class Operator, class Share, class Give>
__device__ inline void gather_all(const Tiles &tiles, const Operator &along, const Share *share, u64 *arrived,
                                  Give give) {
  double *const sums = tiles.sums + tiles.parts;
  add_bands(tiles, along, share, [&](u32 begin, u32 end) {
    for (u32 first = begin + threadIdx.x; first < end; first += BESIDE * blockDim.x) {
      u32 row[BESIDE];
      double came[BESIDE];
#pragma unroll
      for (u32 k = 0; k < BESIDE; k++) {
        row[k] = first + k * blockDim.x;
        came[k] = row[k] < end ? __ldcg(sums + row[k]) : NOT_A_NUMBER;
      }
#pragma unroll
      for (u32 k = 0; k < BESIDE; k++)
        if (came[k] != came[k])
          row[k] = NONE;
        else
          sums[row[k]] = 0;
      give(row, came);
    }
  });
  if (tiles.longs) {
    grid_barrier(arrived);
    const Crew crew = whole_grid();
    for (u32 place = crew.warp; place < tiles.longs; place += crew.warps) {
      const u32 last = tiles.first_parts[place + 1];
      double came = 0;
      for (u32 part = tiles.first_parts[place] + lane_id(); part < last; part += 32) {
        came += __ldcg(tiles.sums + part);
        tiles.sums[part] = 0;
      }
      came = lanes_sum(came);
      if (lane_id() == 0) give_one(give, tiles.long_rows[place], came);
    }
  }
}

// In: how the rows stand, InRows<Offset, TIERED> or Tiles.
template <class In, class Operator, class Share, int THREADS, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS)
    pagerank(const __grid_constant__ In in, const Operator along, const Walk<Share> walk) {
  Control &control = *walk.control;
  Pair all = {control.change, control.lost};
  u32 turn = control.turn, done = 0;
  const u64 launched = clock64();
  while (done < walk.iterations) {
    const u64 began = clock64();
    // (Not by the read-only cache: what it has of them is of the iteration before the last.)
    const Share *const share = turn ? walk.shares[1] : walk.shares[0];
    Share *const next = turn ? walk.shares[0] : walk.shares[1];
    turn ^= 1;
    const double anywhere = 1 - walk.damping + walk.damping * all.other;
    Pair moved = {0, 0};
    gather_all(in, along, share, &control.arrived, [&](const auto &vertices, const auto &came) {
      auto put = [&](u32 k, Share now) { next[vertices[k]] = now; };
      advance_some(walk, share, anywhere, vertices, came, moved, put);
    });
    moved = block_sum(moved);
    Pair *const sums = walk.block_sums + (done & 1) * gridDim.x;  // those before may still be read
    if (threadIdx.x == 0) sums[blockIdx.x] = moved;
    if (first_item() == 0) control.stop = began - launched >= walk.time ? done + 1 : 0;
    grid_barrier(&control.arrived);
    all = sum_of_blocks(sums);
    if (first_item() == 0) walk.changes[done] = all.one, walk.clocks[done] = clock64() - began;
    done++;
    if (all.one < walk.tolerance || __ldcg(&control.stop) == done) break;
  }
  if (first_item() == 0) {
    control.lost = all.other, control.change = all.one;
    control.done = done, control.turn = turn;
  }
}

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
