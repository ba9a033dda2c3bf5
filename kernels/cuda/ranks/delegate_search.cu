// Breadth-first search by one rank of several, each on a device of its own: all supersteps in one
// cooperative launch (Pan, Pearce, Owens: Scalable Breadth-First Search on a GPU Cluster).
//
// Along dd, dn and nd, one set of rows here, a superstep pushes or pulls: what is found along the
// one need not be looked for along another. nn pushes only. What was found of the delegates, and of
// other ranks' vertices, is written as mail; ranks tell each other that theirs is written, and read
// it from each other's memory. Then every rank notes what is new, its own finds and the others'.
// Where memory cannot be read so, the launch ends with the mail, and the host carries it.
//
// A pull of many delegates takes two rounds of mail. An edge between delegates stands where its end
// of lower degree is owned, so the owner of a delegate has the edges to its hubs, and finds what
// another rank would mostly look for in vain: ranks look for their own first, and in the second
// round for those of the others that nobody has found. In the first each tells of its own alone.
#include "bfs/direction.cuh"
#include "ranks/normals.cuh"
#include "bfs/passes.cuh"
#include "bfs/push.cuh"
#include "ranks/delegate_passes.cuh"

#define FEW_EDGES 65536  // that a push follows and queues what it finds
#define LITTLE 2  // entries that a pull may look at, for each that a queue takes, to queue its finds

enum Going : u32 { GO, AGAIN, LAST, STOP };

// Where a rank stands: every block keeps the same, in shared memory.
struct Standing {
  Outlook now;
  u64 round;
  Laps laps;
  u64 examined;  // in the first of two rounds
  u64 delegate_bytes, normal_bytes;
  u32 level;
  u32 status;
  u32 step;
  u32 delegates;  // visited
  u32 normals;    // in the frontier
  u32 going;
  bool enqueueing;
  bool twice;  // this rank's visits take two rounds
  bool wide;   // and may find much
  bool fresh;  // it found something in this superstep

  __device__ void load(const DelegateControl &control) {
    now.load(control);
    round = __ldcg(&control.round);
    delegates = __ldcg(&control.delegates);
    normals = __ldcg(&control.normals);
    twice = wide = false;
    delegate_bytes = normal_bytes = 0;
    level = __ldcg(&control.level);
    step = __ldcg(&control.step);
    enqueueing = __ldcg(&control.enqueueing);
    fresh = __ldcg(&control.fresh);
    status = RUNNING;
    laps.begin();
  }

  __device__ void save(DelegateControl &control) const {
    now.save(control);
    control.round = round;
    control.delegates = delegates;
    control.normals = normals;
    control.level = level;
    control.step = step;
    control.enqueueing = enqueueing;
    control.fresh = fresh;
    control.status = status;
  }

  // What to do next: a step, or to end the launch.
  template <class Offset, class Distance>
  __device__ void decide(const Graph<Offset> &graph, const DelegateRank<Offset, Distance> &rank) {
    const Search<Offset, Distance> &search = rank.search;
    const u32 last_level = sizeof(Distance) == 1 ? 254 : 0x7ffffffe;
    if (level >= search.max_level)
      status = DONE;
    else if (level == last_level)
      status = WIDEN;
    else if (level - search.first_level == search.level_capacity)
      status = MORE;
    const Costs costs = {search.push_cost, 0, ~0ull};
    step = PUSH;
    if (now.found && graph.edges)
      step = choose(graph, now, 1, search.enqueue_edges, costs);
    // What others find comes on top: a guess, after which the queue may have to be gathered.
    enqueueing = step == PUSH && now.forward <= search.enqueue_edges;
    if (enqueueing && now.forward > FEW_EDGES)
      enqueueing = choose(graph, after_push(now, graph.vertices, graph.edges),
                          1, search.enqueue_edges, costs) == PUSH;
    const bool many = rank.name.normals - delegates >= rank.many_delegates;
    twice = step == PULL && many && !rank.hosted;
    wide = step == PULL ? many : now.forward > FEW_EDGES;
    delegate_bytes = normal_bytes = 0;
  }

  // What was new has been noted: the source, or a level.
  __device__ void advance(const Counters &visits, const Noted &noted, u32 vertices,
                          u32 most_queued) {
    const u32 fresh_delegates = (u32)__ldcg(&noted.delegates);
    normals = (u32)__ldcg(&noted.normals);
    now.found = normals + fresh_delegates;
    now.visited += (u32)__ldcg(&noted.with_rows);
    delegates += fresh_delegates;
    const u64 queue = __ldcg(&noted.queued);
    const bool queued = enqueueing && QUEUED_VERTICES(queue) <= most_queued;
    if (step == PULL) now.pulled(__ldcg(&visits.wasted));
    else if (!queued) now.pushed(vertices);
    if (queued) now.enqueued(queue);
  }

  // Nobody found anything, or this rank is to stop.
  __device__ void end(u32 how) {
    status = how;
    level++;
  }

  __device__ void record(const Counters &visits, const Noted &noted, DelegateLevel &level) const {
    level = {__ldcg(&visits.examined), {}, delegate_bytes, normal_bytes,
             (u32)__ldcg(&noted.normals), (u32)__ldcg(&noted.delegates), step == PULL, 0};
    laps.copy_to(level.clocks);
  }
};

// What a pull looks for: all that it has rows of, or, of two rounds, in the first all but the delegates
// that other ranks own, in the second these alone. Strips below `split` count from one place on, those
// from there on from another.
struct Sought : Everyone {
  u32 split, low, high;

  template <class Offset, class Distance>
  __device__ Sought(const Graph<Offset> &graph, const DelegateRank<Offset, Distance> &rank,
                    Share share) {
    const u32 begin = rank.region.begin / STRIP_WORDS, end = rank.region.end / STRIP_WORDS;
    const u32 delegates = rank.delegate_words / STRIP_WORDS, all = strips_of(graph.vertices);
    strips = split = all;
    low = high = 0;
    if (share == OWN_DELEGATES) {
      split = end - begin;
      strips = split + (all > delegates ? all - delegates : 0);
      low = begin;
      high = delegates - split;
    } else if (share == OTHER_DELEGATES) {
      split = begin;
      strips = delegates - (end - begin);
      high = end - begin;
    }
  }

  __device__ u32 strip(u32 i) const { return i + (i < split ? low : high); }
};

// Tell the others that the mail is written, and wait for theirs. share: of delegates, that the mail
// tells of. Called by block 0.
template <class Offset, class Distance>
__device__ void meet(const DelegateRank<Offset, Distance> &rank, Standing &here,
                     Share share = ALL_DELEGATES) {
  __shared__ u32 anything, again, stopped;
  __shared__ u64 bytes;
  const u32 parity = here.round & 1;
  const u32 *sent = rank.sent + parity * (rank.ranks + 1), delegates = __ldcg(sent + rank.ranks);
  const bool unfinished = share == OWN_DELEGATES;  // the others come in another round
  if (threadIdx.x == 0) {
    anything = here.fresh;
    again = unfinished;
    stopped = 0;
    bytes = 0;
    const u32 most = stretches_of(share, rank.region, rank.delegate_words).words();
    here.delegate_bytes += 4ull * min(delegates, most) * (rank.ranks - 1);
  }
  __syncthreads();
  for (u32 peer = threadIdx.x; peer < rank.ranks; peer += blockDim.x) {
    if (peer == rank.rank) continue;
    const Peer &other = rank.peers[peer];
    const u32 ghosts = __ldcg(sent + peer);
    atomicAdd(&bytes, 4ull * min(ghosts, other.own_ghost_words));
    if (!rank.hosted) {
      Arrival *there = other.arrivals + parity;
      there->fresh = here.fresh;
      there->delegates = delegates;
      there->ghosts = ghosts;
      there->again = unfinished;
      __threadfence_system();
      release_far(&there->round, here.round);
    }
    const Arrival *arrival = rank.arrivals + 2 * peer + parity;
    for (u32 looks = 1; acquire_far(&arrival->round) != here.round; looks++)
      if (looks % STOP_LOOKS == 0 && far_load(rank.stop)) {
        stopped = 1;
        break;
      }
    if (far_load(&arrival->fresh)) anything = 1;
    if (far_load(&arrival->again)) again = 1;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    here.normal_bytes += bytes;
    rank.control->going = stopped ? STOP : again ? AGAIN : anything ? GO : LAST;
  }
}

template <class Offset, class Distance>
__device__ void wake_links(const DelegateRank<Offset, Distance> &rank) {
  for (u32 i = 0; i < rank.ranks; i++) {
    const Peer &peer = rank.peers[i];
    if (i != rank.rank && !rank.hosted)
      wake(peer.mail[0], 2 * (rank.delegate_words + peer.all_ghost_words));
  }
}

template <class Offset, class Distance, bool TIERED, int THREADS, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS)
    delegate_search(const __grid_constant__ Graph<Offset> graph,
                    const __grid_constant__ DelegateRank<Offset, Distance> rank) {
  extern __shared__ Scratch scratch[];  // for each warp
  __shared__ Standing here;
  Scratch &own = scratch[threadIdx.x / 32];
  const Search<Offset, Distance> &search = rank.search;
  DelegateControl *control = rank.control;
  u32 *visited = search.visited[0], *kept = search.visited[1];
  const bool block_leader = threadIdx.x == 0, leader = blockIdx.x == 0 && block_leader;
  const Queue<Offset> &queue = search.queue[0];

  if (block_leader) here.load(*control);
  __syncthreads();
  if (rank.stage == MEET) {
    if (blockIdx.x == 0) meet(rank, here);
    wake_links(rank);
    if (leader) control->round++;
    return;
  }
  if (rank.stage == BEGIN) {
    begin(rank);
    grid_barrier(&control->arrived);
    Noted *noted = &control->noted[0];
    Enqueue<Offset> into = {graph.offsets, queue, &noted->queued, own.buffer};
    note_new(graph, rank, 0, true, true, into).add_to(*noted);
    grid_barrier(&control->arrived);
    if (block_leader) {
      here.now = {0, graph.edges, ~0ull, 0, 0, 0, true};
      here.level = here.delegates = 0;
      here.step = PUSH;
      here.enqueueing = true;
      here.advance(control->visits[0], *noted, graph.vertices, search.enqueue_edges);
    }
    __syncthreads();
    if (!rank.hosted && blockIdx.x == 0)
      meet(rank, here);  // nobody reads the last search's parents
    grid_barrier(&control->arrived);
    // What the source's note counted must not count again.
    if (leader) control->noted[0] = control->noted[1] = Noted{};
    if (block_leader && !rank.hosted) {
      here.round++;
      if (__ldcg(&control->going) == STOP) here.status = STOPPED;
    }
  }

  bool receiving = rank.stage == RECEIVE, second = false;  // round of a superstep
  for (;;) {
    if (!receiving && !second) {
      if (block_leader && here.status == RUNNING) here.decide(graph, rank);
      __syncthreads();
      if (here.status != RUNNING) break;
    }
    const u32 parity = here.round & 1, level = here.level + 1;
    Counters *visits = &control->visits[level & 1];
    Noted *noted = &control->noted[level & 1];
    const Lines &changed = rank.changed[level % 3];
    DelegateName name = rank.name;
    name.changed = changed;
    Share share = ALL_DELEGATES;
    if (!receiving) {
      if (here.step == GATHER) {
        Enqueue<Offset> into = {graph.offsets, queue, &visits->queued, own.buffer};
        gather_frontier(graph, rank.frontier, 0, rank.own_words, into);
        grid_barrier(&control->arrived);
        if (block_leader) {
          here.now.enqueued(__ldcg(&visits->queued));
          here.decide(graph, rank);
        }
        __syncthreads();
      }
      share = share_of(second, here.twice);
      const bool last = second == here.twice;   // nothing of this rank comes after
      const bool idle = second && !here.twice;  // others need the round
      // Where much is found, it is almost everywhere.
      if (here.wide && !second) set_all(rank, changed, ALL);
      if (here.wide) name.changed = {};
      Tally tally = {};
      if (here.now.found && graph.edges && !idle) {
        if (here.step == PUSH) {
          Enqueue<Offset> nothing = {graph.offsets, queue, &visits->queued, own.buffer};
          tally = push<Offset, Distance, TIERED, LAZY>(graph, search, queue, here.now.frontier,
                                                       here.now.forward, visited, level, nothing,
                                                       name);
        } else {
          const Sought sought(graph, rank, share);
          const u32 *now = second ? visited : kept;
          u32 *after = second ? rank.late : visited;
          const bool sparse = second || is_sparse(sought, graph.vertices - here.now.visited);
          tally = pull<Offset, Distance, TIERED>(graph, search, kept, now, after, sought, own,
                                                 *visits, level, sparse, name);
          grid_barrier(&control->arrived);
          if (__ldcg(&visits->rest))
            tally += pull_rest<Offset, Distance, TIERED>(graph, search, kept, after, *visits, level,
                                                         name);
        }
      }
      if (here.normals && last) tally += push_normals(rank, name, visited, level, own.buffer);
      tally.add_to(*visits);
      grid_barrier(&control->arrived);
      if (block_leader) {
        here.fresh = __ldcg(&visits->found) != 0;
        if (!second) here.examined = 0;
        here.laps.end(VISIT);
      }

      __syncthreads();
      // What was found is no more than what was looked at; in a second round it is little.
      const u64 examined = __ldcg(&visits->examined);
      const u64 most = here.step == PUSH ? here.now.forward : examined - here.examined;
      if (here.fresh && !idle)
        write_delegates(rank, second ? rank.late : visited, second ? visited : kept,
                        second ? visited : nullptr, share, parity, most, changed);
      if (here.fresh && last) write_ghosts(rank, visited, kept, parity, examined, changed);
      if (rank.hosted) {
        if (block_leader) here.status = EXCHANGE;
        break;
      }
      grid_barrier(&control->arrived);
      if (block_leader) {
        here.examined = examined;
        here.laps.end(WRITE);
      }
    }
    receiving = false;
    if (blockIdx.x == 0) meet(rank, here, share);
    grid_barrier(&control->arrived);
    if (block_leader) {
      here.going = __ldcg(&control->going);
      here.round++;
      here.laps.end(WAIT);
    }
    __syncthreads();
    if (here.going == LAST || here.going == STOP) {
      if (block_leader) here.end(here.going == STOP ? STOPPED : DONE);
      if (leader) here.record(*visits, *noted, rank.levels[level - 1 - search.first_level]);
      break;
    }
    // A pull that looked at little found little: what is few is pushed, if it is queued.
    if (block_leader && here.step == PULL)
      here.enqueueing = __ldcg(&visits->examined) <= LITTLE * (u64)search.enqueue_edges;
    if (blockIdx.x == 0) {  // for the round after this one
      for (u32 i = threadIdx.x; i <= rank.ranks; i += blockDim.x)
        rank.sent[(parity ^ 1) * (rank.ranks + 1) + i] = 0;
      if (block_leader) {
        visits->rest = 0;
        control->visits[here.level & 1] = Counters{};
        control->noted[here.level & 1] = Noted{};
      }
    }
    receive(rank, visited, level, parity, second, name.changed);
    grid_barrier(&control->arrived);
    if (block_leader) here.laps.end(READ);
    second = here.going == AGAIN;
    if (second) continue;
    Enqueue<Offset> into = {graph.offsets, queue, &noted->queued, own.buffer};
    note_new(graph, rank, level, here.step == PUSH, here.enqueueing, into).add_to(*noted);
    grid_barrier(&control->arrived);
    if (block_leader) {
      here.level++;
      here.advance(*visits, *noted, graph.vertices, search.enqueue_edges);
      here.laps.end(NOTE);
    }
    if (leader) here.record(*visits, *noted, rank.levels[level - 1 - search.first_level]);
    if (block_leader) here.laps.begin();
  }

  __syncthreads();
  if (here.status == DONE) settle(search, visited, rank.own_words * 32);
  if (leader) here.save(*control);
}
