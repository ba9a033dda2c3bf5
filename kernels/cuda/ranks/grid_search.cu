// Breadth-first search in a grid of partitions by one rank of several, each on a device of its own:
// all supersteps in one cooperative launch (layouts 2d and 1d; Bisson, Bernaschi, Mastrostefano:
// Parallel Distributed Breadth First Search on the Kepler Architecture, who push only).
//
// A superstep has rounds of mail, after each of which all ranks meet:
//   columns  the frontier, to the ranks that have its grid columns; counters, from which all ranks
//            know the end, or choose one direction
//   rows     where they pull: what is visited, to the ranks that have its grid rows
//   fold     what was found, to its owners: by pushes along rows, by pulls along columns
// Ranks read each other's mail in each other's memory. Where that cannot be, the launch ends with
// the mail, and the host carries it.
#include "bfs/direction.cuh"
#include "ranks/grid_passes.cuh"
#include "bfs/passes.cuh"
#include "bfs/push.cuh"

// Where a rank stands: every block keeps the same, in shared memory.
struct Standing {
  u64 round;
  Laps laps;
  u64 forward;  // edges here that leave its own vertices in the frontier
  u64 unvisited_edges;
  u64 unvisited_rows;
  u64 pull_bound;
  u64 push_work, pull_work;  // what its part of the next superstep takes
  u64 expand_bytes, fold_bytes;
  u64 queued_edges;
  u64 found;  // by all ranks
  u32 queued;
  u32 level;
  u32 own_found;
  u32 status;
  u32 pending;
  u32 step;

  __device__ void load(const GridControl &control) {
    round = __ldcg(&control.round);
    forward = __ldcg(&control.forward);
    unvisited_edges = __ldcg(&control.unvisited_edges);
    unvisited_rows = __ldcg(&control.unvisited_rows);
    pull_bound = __ldcg(&control.pull_bound);
    push_work = __ldcg(&control.own_push_work);
    pull_work = __ldcg(&control.own_pull_work);
    expand_bytes = __ldcg(&control.expand_bytes);
    fold_bytes = __ldcg(&control.fold_bytes);
    found = __ldcg(&control.found);
    level = __ldcg(&control.level);
    own_found = __ldcg(&control.own_found);
    pending = __ldcg(&control.pending);
    step = __ldcg(&control.step);
    status = RUNNING;
    laps.begin();
  }

  __device__ void save(GridControl &control) const {
    control.round = round;
    control.forward = forward;
    control.unvisited_edges = unvisited_edges;
    control.unvisited_rows = unvisited_rows;
    control.pull_bound = pull_bound;
    control.own_push_work = push_work;
    control.own_pull_work = pull_work;
    control.expand_bytes = expand_bytes;
    control.fold_bytes = fold_bytes;
    control.level = level;
    control.own_found = own_found;
    control.pending = pending;
    control.step = step;
    control.status = status;
  }

  template <class Offset, class Distance>
  __device__ void begin(const GridRank<Offset, Distance> &rank) {
    unvisited_edges = rank.own_edges;
    unvisited_rows = rank.own_rows;
    pull_bound = ~0ull;
    level = 0;
    step = PUSH;
    expand_bytes = fold_bytes = 0;
  }

  // What was new has been noted. Pushing along the edges of own vertices in the frontier, or
  // pulling for those that are unvisited: counts, of which all ranks add up the same.
  template <class Offset, class Distance>
  __device__ void advance(const Graph<Offset> &graph, const GridRank<Offset, Distance> &rank,
                          const Weights &noted) {
    own_found = (u32)__ldcg(&noted.found);
    forward = __ldcg(&noted.forward);
    unvisited_edges -= __ldcg(&noted.edges);
    unvisited_rows -= __ldcg(&noted.rows);
    const u64 most = min(pull_bound / rank.grid_rows, unvisited_edges);
    const float share = (float)forward / (float)(forward + unvisited_edges);
    const float looks = forward ? looks_at(graph, share) : 0.0f;
    push_work = (u64)(rank.search.push_cost * (float)forward);
    pull_work = min((u64)((float)unvisited_rows * looks), most) + rank.own_words;
  }

  // All ranks have met, and have taken the same counters.
  __device__ void decide(const GridControl &control, u32 max_level) {
    found = __ldcg(&control.found);
    if (!found || level >= max_level) status = DONE;
    step = __ldcg(&control.push_work) > __ldcg(&control.pull_work) ? PULL : PUSH;
  }

  __device__ void met(const GridControl &control) {
    round++;
    if (__ldcg(&control.stopped)) status = STOPPED;
  }

  // The frontier, or a slice of it, has been queued.
  __device__ void gathered(u64 queue) {
    queued = QUEUED_VERTICES(queue);
    queued_edges = QUEUED_EDGES(queue);
  }
};

// All vertices but those without a row to pull along.
struct Fertile : Everyone {
  const u32 *barren;

  __device__ uint4 passed_over(u32 strip, uint4 visited) const {
    const uint4 none = ((const uint4 *)barren)[strip];
    return {visited.x | none.x, visited.y | none.y, visited.z | none.z, visited.w | none.w};
  }
};

// Bytes of the mail of a round. Called by block 0, for each of its threads a part.
template <class Offset, class Distance>
__device__ u64 bytes_written(const GridRank<Offset, Distance> &rank, const Standing &here,
                             Round round) {
  u64 bytes = 0;
  const bool expanding = round != FOLD;
  const u32 begin = expanding ? 0 : rank.own_segments;
  const u32 end = expanding ? rank.own_segments : rank.segment_count;
  for (u32 s = begin + threadIdx.x; s < end; s += blockDim.x) {
    const Segment &part = rank.segments[s];
    const bool columns = expanding ? round == EXPAND_COLUMNS : here.step == PULL;
    const u32 count = __ldcg(rank.sent + (here.round & 1) * rank.segment_count + s);
    bytes += 4ull * min(count, part.words) * (columns ? part.in_columns : part.in_rows);
  }
  return bytes;
}

// Tell the others that the mail of this round is written, and wait for theirs. Called by block 0.
template <class Offset, class Distance>
__device__ __noinline__ void meet(const GridRank<Offset, Distance> &rank, Standing &here,
                                  Round round) {
  __shared__ u64 sums[3], bytes;
  __shared__ u32 stopped;
  const u32 parity = here.round & 1;
  GridControl *control = rank.control;
  if (threadIdx.x == 0) {
    sums[0] = here.own_found;
    sums[1] = here.push_work;
    sums[2] = here.pull_work;
    bytes = stopped = 0;
  }
  __syncthreads();
  const u64 some = round == NO_ROUND ? 0 : bytes_written(rank, here, round);
  __syncthreads();
  if (some) atomicAdd(&bytes, some);
  for (u32 peer = threadIdx.x; peer < rank.ranks; peer += blockDim.x) {
    if (peer == rank.rank) continue;
    if (!rank.hosted) {
      GridArrival *there = rank.peers[peer] + parity;
      there->push_work = here.push_work;
      there->pull_work = here.pull_work;
      there->found = here.own_found;
      __threadfence_system();
      release_far(&there->round, here.round);
    }
    const GridArrival *arrival = rank.arrivals + 2 * peer + parity;
    for (u32 looks = 1; acquire_far(&arrival->round) != here.round; looks++)
      if (looks % STOP_LOOKS == 0 && far_load(rank.stop)) {
        stopped = 1;
        break;
      }
    atomicAdd(&sums[0], (u64)far_load(&arrival->found));
    atomicAdd(&sums[1], far_load(&arrival->push_work));
    atomicAdd(&sums[2], far_load(&arrival->pull_work));
  }
  __syncthreads();
  // For the round after this one, whose counts all others have read.
  for (u32 s = threadIdx.x; s < rank.segment_count; s += blockDim.x)
    rank.sent[(parity ^ 1) * rank.segment_count + s] = 0;
  if (threadIdx.x) return;
  control->stopped = stopped;
  control->queued[0] = 0;
  (round == FOLD ? here.fold_bytes : here.expand_bytes) += bytes;
  if (round != EXPAND_COLUMNS) return;
  control->found = sums[0];
  control->push_work = sums[1];
  control->pull_work = sums[2];
  const u32 next = (here.level & 1) ^ 1;
  control->visits[next] = Counters{};
  control->noted[next] = Weights{};
}

// Follow the edges of the frontier, as many of its vertices at a time as the queue takes.
template <class Offset, class Distance, bool TIERED>
__device__ Tally push_frontier(const Graph<Offset> &graph, const GridRank<Offset, Distance> &rank,
                               Standing &here, u32 *buffer) {
  const Search<Offset, Distance> &search = rank.search;
  const Queue<Offset> &queue = search.queue[0];
  GridControl *control = rank.control;
  const u32 rows = min(rank.row_words, (graph.vertices + 1023) / 1024 * 32);
  const u32 slice = here.found <= search.enqueue_edges ? rows : search.enqueue_edges / 32;
  Tally tally = {};
  for (u32 begin = 0, turn = 0; begin < rows; begin += slice, turn ^= 1) {
    Enqueue<Offset> into = {graph.offsets, queue, &control->queued[turn], buffer};
    gather_frontier(graph, rank.frontier, begin, min(slice, rows - begin), into);
    grid_barrier(&control->arrived);
    if (threadIdx.x == 0) here.gathered(__ldcg(&control->queued[turn]));
    __syncthreads();
    if (blockIdx.x == 0 && threadIdx.x == 0) control->queued[turn ^ 1] = 0;
    Enqueue<Offset> nothing = {graph.offsets, queue, nullptr, buffer};
    const Tally more =
        push<Offset, Distance, TIERED, LAZY>(graph, search, queue, here.queued, here.queued_edges,
                                             search.visited[0], here.level + 1, nothing, rank.name);
    tally.examined += more.examined;
    if (slice < rows) grid_barrier(&control->arrived);  // the queue is read
  }
  return tally;
}

template <class Offset, class Distance, bool TIERED>
__device__ Tally pull_unvisited(const Graph<Offset> &graph,
                                const GridRank<Offset, Distance> &rank, const Standing &here,
                                Scratch &scratch, Counters &visits) {
  const Search<Offset, Distance> &search = rank.search;
  u32 *visited = search.visited[0], *kept = search.visited[1];
  const u32 level = here.level + 1;
  const Fertile sought = {{strips_of(graph.vertices)}, rank.barren};
  const u64 unvisited = here.unvisited_rows * rank.grid_rows;  // as many of others as of its own
  Tally tally = pull<Offset, Distance, TIERED>(graph, search, kept, kept, visited, sought, scratch,
                                               visits, level, is_sparse(sought, unvisited),
                                               rank.name);
  grid_barrier(&rank.control->arrived);
  if (__ldcg(&visits.rest)) {
    tally += pull_rest<Offset, Distance, TIERED>(graph, search, kept, visited, visits, level,
                                                 rank.name);
  }
  return tally;
}

template <class Offset, class Distance, bool TIERED, int THREADS, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS)
    grid_search(const __grid_constant__ Graph<Offset> graph,
                const __grid_constant__ GridRank<Offset, Distance> rank) {
  extern __shared__ Scratch scratch[];  // for each warp
  __shared__ Standing here;
  Scratch &own = scratch[threadIdx.x / 32];
  const Search<Offset, Distance> &search = rank.search;
  GridControl *control = rank.control;
  const bool block_leader = threadIdx.x == 0, leader = blockIdx.x == 0 && block_leader;
  const u32 last_level = sizeof(Distance) == 1 ? 254 : 0x7ffffffe;

  if (block_leader) here.load(*control);
  __syncthreads();
  if (rank.stage == MEET) {
    if (blockIdx.x == 0) meet(rank, here, NO_ROUND);
    for (u32 kind = 0; kind < KINDS && !rank.hosted; kind++)
      for (u32 l = 0; l < rank.letter_counts[kind]; l++)
        wake(rank.letters[kind][l].mail[0], rank.letters[kind][l].words);
    if (leader) control->round++;
    return;
  }
  if (rank.stage == BEGIN) {
    begin(rank);
    grid_barrier(&control->arrived);
    note_found(graph, rank, 0, here.round & 1, true, control->noted[0]);
    grid_barrier(&control->arrived);
    if (block_leader) {
      here.begin(rank);
      here.advance(graph, rank, control->noted[0]);
    }
    __syncthreads();
  }

  // All that waits for other ranks is between two barriers: block 0 meets them.
  auto meeting = [&](Round round) {
    if (blockIdx.x == 0) meet(rank, here, round);
    grid_barrier(&control->arrived);
    if (block_leader) {
      here.met(*control);
      here.laps.end(WAIT);
    }
    __syncthreads();
  };
  // Whether the host has to carry mail that is written; it has been here then.
  auto leave = [&](Round round) {
    if (!rank.hosted) {
      grid_barrier(&control->arrived);
      if (block_leader) here.laps.end(WRITE);
      return false;
    }
    __syncthreads();  // all have read the status
    if (block_leader) {
      here.pending = round;
      here.status = EXCHANGE;
    }
    __syncthreads();
    return true;
  };

  u32 entry = rank.stage == RECEIVE ? here.pending : NO_ROUND;
  for (;;) {
    if (entry == NO_ROUND) {
      if (block_leader && here.level == last_level) here.status = WIDEN;
      if (block_leader && here.level - search.first_level == search.level_capacity)
        here.status = MORE;
      __syncthreads();
      if (here.status != RUNNING || leave(EXPAND_COLUMNS)) break;
    }
    if (entry <= EXPAND_COLUMNS) {
      meeting(EXPAND_COLUMNS);
      if (block_leader && here.status == RUNNING) here.decide(*control, search.max_level);
      __syncthreads();
      if (here.status != RUNNING) break;
      learn(rank, FRONTIER_OF_COLUMNS, (here.round - 1) & 1, rank.frontier);
    }
    const bool pulling = here.step == PULL, rows_first = pulling && rank.grid_columns > 1;
    const bool folding = (pulling ? rank.grid_rows : rank.grid_columns) > 1;
    Counters *visits = &control->visits[(here.level & 1) ^ 1];
    Weights *noted = &control->noted[(here.level & 1) ^ 1];
    if (entry <= EXPAND_COLUMNS && rows_first) {
      tell_rows(rank, here.round & 1, here.own_found <= rank.own_words);
      if (leave(EXPAND_ROWS)) break;
    }
    if (entry <= EXPAND_ROWS) {
      if (rows_first) {
        meeting(EXPAND_ROWS);
        if (here.status != RUNNING) break;
        learn(rank, VISITED_OF_ROWS, (here.round - 1) & 1, nullptr);
      }
      grid_barrier(&control->arrived);
      if (block_leader) here.laps.end(READ);
      Tally tally = pulling ? pull_unvisited<Offset, Distance, TIERED>(graph, rank, here, own, *visits)
                            : push_frontier<Offset, Distance, TIERED>(graph, rank, here, own.buffer);
      tally.add_to(*visits);
      grid_barrier(&control->arrived);
      if (block_leader) here.laps.end(VISIT);
    }
    const bool listing = __ldcg(&visits->examined) <= LISTED * (u64)rank.words;
    if (entry <= EXPAND_ROWS && folding) {
      tell_owners(rank, pulling, here.round & 1, listing);
      if (leave(FOLD)) break;
    }
    if (folding) {
      meeting(FOLD);
      if (here.status != RUNNING) break;
      take_found(rank, pulling ? FOUND_IN_COLUMNS : FOUND_IN_ROWS, (here.round - 1) & 1,
                 here.level + 1);
      grid_barrier(&control->arrived);
      if (block_leader) here.laps.end(READ);
    }
    entry = NO_ROUND;
    note_found(graph, rank, here.level + 1, here.round & 1, listing, *noted);
    grid_barrier(&control->arrived);
    if (block_leader) {
      here.level++;
      if (pulling) here.pull_bound = __ldcg(&visits->wasted);
      here.advance(graph, rank, *noted);
    }
    if (leader) {
      here.laps.end(NOTE);
      GridLevel &record = rank.levels[here.level - 1 - search.first_level];
      record = {__ldcg(&visits->examined), {}, here.expand_bytes, here.fold_bytes, here.own_found,
                pulling};
      here.laps.copy_to(record.clocks);
    }
    if (block_leader) here.laps.begin();
    if (block_leader) here.expand_bytes = here.fold_bytes = 0;
    __syncthreads();
  }

  __syncthreads();
  if (here.status == DONE) settle(search, search.visited[0], rank.own_words * 32);
  if (leader) here.save(*control);
}
