// PageRank: pipeline/algorithms/pagerank.py says what is computed, kernels/pieces/walk.py how on a CPU.
// An iteration gathers shares along all rows and makes new ones of them; a launch does many of them, and
// the grid meets once in each, and once more where rows are cut, and where they stand in columns.
//
// A share is read for each entry, and from anywhere. Where that is what takes the time, rows are cut into
// columns of targets that a cache holds, one column after the other (Beamer, Asanovic, Patterson: Reducing
// Pagerank Communication via Propagation Blocking, IPDPS 2017, section III; MultiGraph's dense blocks): the
// first ones are of hubs, and as narrow as the cache of a multiprocessor. Shares are floats of 64 bits, or
// of 32, of which a cache holds twice as many; what is made of them is added up in 64 bits.
#include "programs/meeting.cuh"
#include "programs/rows.cuh"
#include "programs/sums.cuh"

#define TOGETHER 4  // entries of a lane whose loads are under way at once

// What an edge makes of the value at its end (kernels/pieces/operators.py).
struct Sum {
  const void *weights;

  __device__ double along(double value, u64 entry) const { return value; }
};

template <class Weight>
struct WeightedSum {
  const Weight *weights;

  __device__ double along(double value, u64 entry) const { return value * __ldg(weights + entry); }
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
// when it teleports; null: `even` at all. part_sums, column_sums, block_sums: of parts of rows, of rows
// that are one column's, and twice of each block. columns: of `dense` rows each, those of the first
// vertices; after them come the rows of all others. changes, clocks: of each iteration of this launch.
// iterations: at most. time: of the launch, in clocks, about.
template <class Share>
struct Walk {
  const double *degree;
  Share *shares[2];
  const double *likely;
  double *part_sums;
  double *column_sums;
  Pair *block_sums;
  Control *control;
  double *changes;
  u64 *clocks;
  double damping;
  double even;
  double tolerance;  // less than 0 where there is none
  u64 time;
  u32 dense;
  u32 columns;
  u32 iterations;
  u32 keeps;  // whether walks teleport from vertices without edges, rather than end there
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
__device__ inline Share advance(const Walk<Share> &walk, double before, double anywhere, u32 vertex,
                                double came, Pair &moved) {
  const double degree = walk.degree[vertex], shares = degree == 0 ? 1 : degree;
  const double rank = walk.damping * came + anywhere * (walk.likely ? walk.likely[vertex] : walk.even);
  const Share now = rank / shares;
  moved += {fabs(rank - before * shares), walk.keeps && degree == 0 ? now : 0};
  return now;
}

// Call `give(vertex, came)` with all that comes to each, once. Called by the whole grid.
template <bool TIERED, class Offset, class Operator, class Share, class Give>
__device__ inline void gather_all(const Rows<Offset> &rows, const Operator &along, const Walk<Share> &walk,
                                  const Share *share, Give give) {
  const Crew crew = whole_grid();
  const u64 cut = (u64)walk.columns * walk.dense;
  auto settle = [&](u32 row, double came) {
    if (row < cut)
      __stcs(walk.column_sums + row, came);
    else
      give((u32)(row - cut) + walk.dense, came);
  };
  for (u32 unit = crew.warp; unit < rows.parts + rows.turns; unit += crew.warps) {
    if (unit < rows.parts) {
      const Entries entries = entries_of_part(rows, unit, place_of(rows, unit));
      const double sum = gather<TIERED>(rows, along, share, entries, lane_id(), 32);
      if (lane_id() == 0) walk.part_sums[unit] = sum;
      continue;
    }
    visit_turn(rows, unit - rows.parts, [&](u32 row, Entries entries, u32 lane, u32 width) {
      const double came = gather<TIERED>(rows, along, share, entries, lane, width);
      if (row != NONE && lane == 0) settle(row, came);
    });
  }
  if (rows.longs) {
    grid_barrier(&walk.control->arrived);
    for (u32 place = crew.warp; place < rows.longs; place += crew.warps) {
      const u32 last = rows.first_parts[place + 1];
      double came = 0;
      for (u32 part = rows.first_parts[place] + lane_id(); part < last; part += 32)
        came += __ldcg(walk.part_sums + part);
      came = lanes_sum(came);
      if (lane_id() == 0) settle(rows.long_rows[place], came);
    }
  }
  if (cut) {
    grid_barrier(&walk.control->arrived);
    FOR_ITEMS(v, walk.dense) {
      double came = 0;
      for (u32 column = 0; column < walk.columns; column++)
        came += __ldcs(walk.column_sums + (u64)column * walk.dense + v);
      give((u32)v, came);
    }
  }
}

template <class Offset, class Operator, bool TIERED, class Share, int THREADS, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS)
    pagerank(const __grid_constant__ Rows<Offset> rows, const Operator along, const Walk<Share> walk) {
  Control &control = *walk.control;
  Pair all = {control.change, control.lost};
  u32 turn = control.turn, done = 0;
  const u64 launched = clock64();
  while (done < walk.iterations) {
    const u64 began = clock64();
    // (Not by the read-only cache: what it has of them is of the iteration before the last.)
    const Share *share = walk.shares[turn];
    Share *next = walk.shares[turn ^= 1];
    const double anywhere = 1 - walk.damping + walk.damping * all.other;
    Pair moved = {0, 0};
    gather_all<TIERED>(rows, along, walk, share, [&](u32 vertex, double came) {
      next[vertex] = advance(walk, share[vertex], anywhere, vertex, came, moved);
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
template <class Offset, class Operator, bool TIERED, class Share, int THREADS, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS)
    gather_shares(const __grid_constant__ Rows<Offset> rows, const Operator along, const Walk<Share> walk,
                  double *came) {
  const Share *share = walk.shares[0];
  gather_all<TIERED>(rows, along, walk, share,
                     [&](u32 vertex, double sum) { came[vertex] = sum; });
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
    next[i] = advance(walk, walk.shares[0][vertex], anywhere, vertex, came[i], moved);
  }
  moved = block_sum(moved);
  if (threadIdx.x == 0) walk.block_sums[blockIdx.x] = moved;
}

// Ranks that have shares of the edges, and each other's memory. came, shares: of each rank; this one's
// own stand there, too. first, count: vertices that this rank has advance, of which it tells all.
template <class Share>
struct Shared {
  double *const *came;
  Share *const *shares;
  Meeting meeting;
  u32 first;
  u32 count;
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
template <class Offset, class Operator, bool TIERED, class Share, int THREADS, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS)
    pagerank_shares(const __grid_constant__ Rows<Offset> rows, const Operator along, const Walk<Share> walk,
                    const __grid_constant__ Shared<Share> shared) {
  Control &control = *walk.control;
  const u32 rank = shared.meeting.rank, ranks = shared.meeting.ranks;
  const u64 launched = clock64();
  double *const came = shared.came[rank];
  Share *const share = shared.shares[rank];
  double lost = control.lost;
  u32 done = 0;
  while (done < walk.iterations) {
    const u64 began = clock64();
    gather_all<TIERED>(rows, along, walk, (const Share *)share,
                       [&](u32 vertex, double sum) { came[vertex] = sum; });
    if (!meet_all(shared.meeting, control, nullptr, 0)) return;
    const double anywhere = 1 - walk.damping + walk.damping * lost;
    Pair moved = {0, 0};
    FOR_ITEMS(i, shared.count) {
      const u32 vertex = shared.first + (u32)i;
      double sum = 0;
      for (u32 peer = 0; peer < ranks; peer++) sum += far_load(shared.came[peer] + vertex);
      const Share now = advance(walk, share[vertex], anywhere, vertex, sum, moved);
      for (u32 peer = 0; peer < ranks; peer++) shared.shares[peer][vertex] = now;
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
  if (first_item() == 0) control.done = done, control.turn = 0;
}
