// Rounds and buckets of shortest paths: pipeline/algorithms/sssp.py has the rules, kernels/reference.py the
// definition. What is nearer than a limit stands in a queue, round after round; what is farther in a pile,
// from which the next bucket is taken (Davidson, Baxter, Garland, Owens: Work-Efficient Parallel GPU
// Methods for Single-Source Shortest Paths, IPDPS 2014, near-far).
#include "programs/queue.cuh"
#include "programs/rows.cuh"

#define FAR 0x7ff0000000000000ull  // bits of the distance of what no path leads to
#define LITTLE 65536     // edges of a bucket that are no work: the next one is wider
#define FEW_EDGES 4      // for each vertex of the pile that was looked through for it, likewise
#define AGAIN 0.25       // of the vertices that leave a bucket, from which on the next one is narrower
#define NARROWEST 1e-30

// What all threads know between rounds. round: from 1 on. bucket_round: the first of the bucket, which
// holds distances from `begin` up to `limit`; piled: vertices among which it was looked for. edges, taken,
// again: as of Control, before the bucket.
struct State {
  u64 edges, taken, again;
  double begin, width, limit;
  u32 round, buckets, bucket_round;
  u32 piled;
  u32 done;
};

// arrived: as of grid_barrier. edges: followed, in all; taken: vertices put in queues; again: those of
// them that had been in one of the same bucket. least: no distance of the pile that is beyond the bucket
// is less, by the bucket's parity.
// queued: items of this round, the next, and the one whose time is over. piled: vertices of the piles.
// stop: whether the time of a launch is over, by the round's parity. beyond: of Whole.
struct Control {
  u64 arrived;
  u64 edges, taken, again;
  u64 least[2];
  u32 queued[3];
  u32 piled[2];
  u32 stop[2];
  u32 beyond;
  State state;
};

// distance: as of Floats or Whole. queued_in: of each vertex the last round that it was queued for. queue: of
// an even and of an odd round. pile: of which the bucket's parity says which one is in use.
struct Paths {
  u64 *distance;
  u32 *queued_in;
  Item *queue[2];
  u32 *pile[2];
  Control *control;
  double most;    // paths are no longer
  u64 clocks;     // of a launch, about
  u32 few;        // items of a round that one block does; it leaves what has twice as many
  u32 few_piled;  // vertices of a pile that it looks through
  u32 stays;      // whether all is done with this bucket
};

__device__ inline u64 bits_of(double distance) { return (u64)__double_as_longlong(distance); }
__device__ inline double value_of(u64 bits) { return __longlong_as_double((long long)bits); }

// How a distance stands in 64 bits: that of the nearer is less. This way as a float. bound: no distance that is
// at least so large has lesser bits. leaving: what is known of a path where a vertex's edges begin. along: its
// distance at the end of one of them, NOWHERE if it is longer than `most`.
struct Floats {
  static const u64 NOWHERE = FAR;

  __device__ static u64 bound(double distance) { return bits_of(distance); }
  __device__ static double value(u64 bits) { return value_of(bits); }
  __device__ static u64 leaving(u64 bits, u32 vertex) { return bits; }
  __device__ static bool nearer(u64 bits, u64 than) { return bits < than; }

  template <class Weight>
  __device__ static u64 along(u64 own, Weight weight, double most, Control &control) {
    const double through = value_of(own) + (double)weight;
    return through <= most ? bits_of(through) : NOWHERE;
  }
};

// Whole numbers, with the parent in the lower half: the least one of those whose edges have some weight, else
// NONE. So no pass looks for these parents. control.beyond: whether a path that was looked at had no room.
struct Whole {
  static const u64 NOWHERE = 0xffffffffffffffffull;
  static const u64 BEYOND = 0xffffffffull;

  __device__ static u64 bound(double distance) {
    return min((u64)ceil(min(distance, (double)BEYOND)), BEYOND) << 32;
  }
  __device__ static double value(u64 bits) { return (double)(bits >> 32); }
  __device__ static u64 leaving(u64 bits, u32 vertex) { return bits >> 32 << 32 | vertex; }
  __device__ static bool nearer(u64 bits, u64 than) { return bits >> 32 < than >> 32; }

  __device__ static u64 along(u64 own, u32 weight, double most, Control &control) {
    const u64 through = (own >> 32) + weight;
    if ((double)through > most) return NOWHERE;
    if (through >= BEYOND) control.beyond = 1;
    return through >= BEYOND ? NOWHERE : through << 32 | (weight ? (u32)own : NONE);
  }
};

// What other threads have written, past the first-level cache.
template <class T>
__device__ inline T fresh(const T &value) {
  return __ldcg(&value);
}

// Ranks that hear what this one has queued: there are none.
struct Nobody {
  __device__ void hear(u32 round, u32 vertex, bool queued) const {}
};

// Rounds and buckets by a gang (queue.cuh). others: hear of each vertex that is queued, by whole warps.
template <class Gang, class Others, class Offset, class Weight, bool TIERED, class Distance = Floats>
struct Stepper {
  static const u64 NOWHERE = Distance::NOWHERE;

  const Gang gang;
  const Others others;
  const Rows<Offset> &rows;
  const Weight *weights;
  const Paths &paths;
  State state;

  // One round: the edges of what is queued shorten distances.
  __device__ void relax(u32 count) {
    Control &control = *paths.control;
    const u32 round = state.round, next = round + 1;
    const u32 turn = state.buckets & 1;
    const u64 limit = Distance::bound(state.limit);
    u64 least = NOWHERE;
    u32 edges = 0, taken = 0, again = 0;
    __shared__ Kept::Slots slots[2];
    Kept to_queue(slots[0]), to_pile(slots[1]);
    auto put_queued = [&](u32 vertex, bool any) {
      const u32 items = any ? items_of(rows.offsets, vertex) : 0;
      push_items(paths.queue[next & 1], &control.queued[next % 3], vertex, items);
      others.hear(next, vertex, any);
    };
    auto put_piled = [&](u32 vertex, bool any) {
      push_vertex(paths.pile[turn], &control.piled[turn], vertex, any);
    };
    auto leaving = [&](u32 vertex) {
      return Distance::leaving(fresh(paths.distance[vertex]), vertex);
    };
    struct Seen {
      u32 vertex;
      Weight weight;
      u64 distance;
    };
    // (A distance that is not fresh is greater, and the atomic operation knows better.)
    auto look = [&](u64 edge) -> Seen {
      const u32 vertex = entry<TIERED>(rows.targets, edge);
      return {vertex, __ldg(weights + edge), paths.distance[vertex]};
    };
    follow(rows.offsets, paths.queue[round & 1], count, gang.crew(), leaving, look,
           [&](u64 own, const Seen &seen, bool any) {
             u32 vertex = NONE;
             bool piled = false, queued = false;
             if (any) {
               edges++;
               vertex = seen.vertex;
               const u64 bits = Distance::along(own, seen.weight, paths.most, control);
               u64 before = 0;
               if (bits < seen.distance) before = atomicMin(paths.distance + vertex, bits);
               const bool nearer = Distance::nearer(bits, before);
               if (nearer && bits < limit) {
                 const u32 last = atomicExch(paths.queued_in + vertex, next);
                 if (last != next) {
                   queued = true;
                   taken++, again += last >= state.bucket_round;
                 }
               } else if (nearer) {
                 piled = before == NOWHERE;  // else it is there already
                 least = min(least, bits);
               }
             }
             to_queue.keep(vertex, queued, put_queued);
             to_pile.keep(vertex, piled, put_piled);
           });
    to_queue.put_all(put_queued);
    to_pile.put_all(put_piled);
    u64 *const to[3] = {&control.edges, &control.taken, &control.again};
    add_sums({edges, taken, again}, to);
    note_least(least, turn);
  }

  // By whole warps.
  __device__ void note_least(u64 least, u32 turn) {
    if (!__any_sync(ALL, least < NOWHERE)) return;
    for (u32 step = 16; step; step /= 2) least = min(least, __shfl_xor_sync(ALL, least, step));
    u64 &of_all = paths.control->least[turn];
    if (lane_id() == 0 && least < fresh(of_all)) atomicMin(&of_all, least);
  }

  // The next bucket, from the least distance in the pile on; whether there may be any.
  __device__ bool next_bucket() {
    const Control &control = *paths.control;
    const u32 turn = state.buckets & 1;
    const u64 least = fresh(control.least[turn]);
    if (least == NOWHERE) return false;
    widen_or_narrow(fresh(control.edges), fresh(control.taken), fresh(control.again));
    state.piled = fresh(control.piled[turn]);
    begin_bucket(least, state.piled);
    return true;
  }

  // least: as of Control; piled: vertices of this pile. What is nearer than the bucket has been queued since
  // it was piled.
  __device__ void begin_bucket(u64 least, u32 piled) {
    Control &control = *paths.control;
    const u32 turn = state.buckets & 1;
    const u64 nearer = Distance::bound(state.limit);
    if (gang.leads()) control.least[turn ^ 1] = NOWHERE;
    gang.meet();
    state.begin = Distance::value(least);
    state.limit = max(state.begin + state.width, nextafter(state.begin, value_of(FAR)));
    state.buckets++;
    state.bucket_round = state.round;
    split(paths.pile[turn], piled, turn, nearer);
    gang.meet();
    if (gang.leads()) control.piled[turn] = 0;
  }

  // By what the bucket that is done has shown, as of Control, while nobody counts.
  __device__ void widen_or_narrow(u64 edges, u64 taken, u64 again) {
    if (edges - state.edges < max((u64)LITTLE, (u64)FEW_EDGES * state.piled))
      state.width *= 2;
    else if (again - state.again > AGAIN * (taken - state.taken))
      state.width = max(state.width / 2, NARROWEST);
    state.edges = edges, state.taken = taken, state.again = again;
  }

  // Queue what the bucket holds, and pile up anew what is beyond it.
  __device__ void split(const u32 *pile, u32 piled, u32 turn, u64 nearer) {
    Control &control = *paths.control;
    const u32 round = state.round;
    const u64 limit = Distance::bound(state.limit);
    u64 least = NOWHERE;
    u32 taken = 0;
    for (u32 first = 0; first < piled; first += gang.threads()) {  // by whole warps
      const u32 i = first + gang.thread();
      const bool any = i < piled;
      const u32 vertex = any ? fresh(pile[i]) : NONE;
      const u64 distance = any ? fresh(paths.distance[vertex]) : 0;
      const bool queued = any && distance >= nearer && distance < limit;
      u32 items = 0;
      if (queued) {
        paths.queued_in[vertex] = round;
        items = items_of(rows.offsets, vertex);
        taken++;
      }
      push_items(paths.queue[round & 1], &control.queued[round % 3], vertex, items);
      push_vertex(paths.pile[turn ^ 1], &control.piled[turn ^ 1], vertex, distance >= limit);
      others.hear(round, vertex, queued);
      if (distance >= limit) least = min(least, distance);
    }
    taken = warp_sum(taken);
    if (lane_id() == 0 && taken) atomicAdd(&control.taken, (u64)taken);
    note_least(least, turn ^ 1);
  }

  // Until nothing is left, the time is over, or rounds are not of the gang's size. began: by clock64.
  __device__ void run(u64 began) {
    Control &control = *paths.control;
    while (!state.done) {
      const u32 round = state.round, count = fresh(control.queued[round % 3]);
      if (fresh(control.stop[round & 1])) return;
      if (count == 0) {
        if (paths.stays) {
          state.done = 1;
          continue;
        }
        if (Gang::ALONE && fresh(control.piled[state.buckets & 1]) > paths.few_piled) return;
        state.done = !next_bucket();
        continue;
      }
      if (Gang::ALONE ? count > 2 * paths.few : count <= paths.few) return;
      if (gang.leads()) {
        control.queued[(round + 2) % 3] = 0;
        control.stop[(round + 1) & 1] = (u64)clock64() - began > paths.clocks;
      }
      relax(count);
      gang.meet();
      state.round++;
    }
  }
};
