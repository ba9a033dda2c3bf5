// What a rank of a search in the layout of delegates reads and writes.
// gpu_ranks/delegate_structures.py has the same structures.
//
// A rank numbers what it knows: the delegates, by their owners; its own normal vertices; and ghosts,
// the normal vertices of other ranks that edges along nn lead to. Each of these, the delegates and
// the ghosts of each owner, begin at a multiple of 1024, so that a warp's 32 words of a bitmap hold
// one kind.
#include "ranks/laps.cuh"
#include "ranks/names.cuh"
#include "bfs/search.cuh"
#include "ranks/sharing.cuh"

// The global id of a delegate or a normal vertex.
struct DelegateName {
  GlobalIds ids;
  const u32 *delegates;  // global id of each; null where `ids` says
  Lines changed;         // in which something is found in this superstep
  u32 normals;           // the first of them; smaller numbers are delegates

  __device__ bool noted(u32 vertex) const { return vertex < normals; }  // others find them, too

  __device__ u32 operator()(u32 vertex) const {
    return delegates && vertex < normals ? delegates[vertex] : ids.of(vertex);
  }

  __device__ void found(u32 vertex) const { changed.mark(vertex); }

  __device__ void found(const uint4 *before, const uint4 &after, u32 strip) const {
    if (!changed.bits) return;
    const uint4 was = before[strip];
    if (was.x != after.x || was.y != after.y || was.z != after.z || was.w != after.w)
      changed.mark(strip * 128);
  }
};

// Which delegates a rank tells of in a round: all, those that it owns, or those that it does not.
enum Share : u32 { ALL_DELEGATES, OWN_DELEGATES, OTHER_DELEGATES };

// The delegates that a rank owns, in words of bitmaps.
struct Region {
  u32 begin, end;

  __device__ bool has(u32 word) const { return begin <= word && word < end; }
};

// What a rank told of, of a round; again: whether it said that it has another one to come.
__device__ inline Share share_of(bool second, bool again) {
  return second ? OTHER_DELEGATES : again ? OWN_DELEGATES : ALL_DELEGATES;
}

// Two stretches of words of the delegates' bitmap.
struct Stretches {
  Region part[2];

  __device__ u32 words() const {
    return part[0].end - part[0].begin + part[1].end - part[1].begin;
  }
};

__device__ inline Stretches stretches_of(Share share, Region own, u32 delegate_words) {
  if (share == OWN_DELEGATES) return {{own, {0, 0}}};
  if (share == OTHER_DELEGATES) return {{{0, own.begin}, {own.end, delegate_words}}};
  return {{{0, delegate_words}, {0, 0}}};
}

// What a peer tells at the end of a round, in this rank's memory.
struct Arrival {
  u64 round;      // written last
  u32 fresh;      // whether it has found anything in this superstep
  u32 delegates;  // that it found
  u32 ghosts;     // that it found and that this rank owns
  u32 again;      // whether the superstep has a second round
};

// Another rank. Its mail stands in its own memory where that can be read, else in a copy here.
struct Peer {
  const u32 *mail[2];   // of even and odd rounds: its delegates, then all of its ghosts
  const u32 *parent;    // by its ghosts that this rank owns; null where they are not at hand
  const u32 *vertex;    // by the same: their numbers here
  u32 *wanted;          // bitmap, by the same: those whose parent is still to come
  Arrival *arrivals;    // in its memory, of this rank: even and odd; null if the host tells
  Region region;        // the delegates that it owns
  u32 ghosts_at;        // words before them in the bitmaps of all of its ghosts
  u32 ghost_words;      // of the ghosts that this rank owns
  u32 all_ghost_words;
  u32 own_ghosts_at;    // the same of our ghosts that it owns
  u32 own_ghost_words;
};

// What was new in a superstep. queued: as Counters has it.
struct Noted {
  u64 queued;
  u64 normals;
  u64 delegates;
  u64 with_rows;  // of both
};

struct DelegateControl {
  u64 arrived;
  Counters visits[2];  // of a superstep and the next
  Noted noted[2];
  u64 round;           // counts on from search to search; a superstep has one or two
  u64 forward;
  u64 unvisited_edges;
  u64 pull_bound;
  u32 status;
  u32 level;
  u32 frontier;
  u32 found;
  u32 visited;
  u32 queued;
  u32 step;
  u32 enqueueing;
  u32 delegates;  // visited
  u32 normals;    // in the frontier
  u32 going;      // what block 0 learned from the others
  u32 fresh;      // whether this superstep has found something
};

struct DelegateLevel {
  u64 examined;
  u64 clocks[PHASES];
  u64 delegate_bytes;  // sent to all others together
  u64 normal_bytes;
  u32 normals;         // found
  u32 delegates;
  u32 pulled;
  u32 unused;
};

// `search.visited`: what is visited now, and what was when the superstep began.
template <class Offset, class Distance>
struct DelegateRank {
  Search<Offset, Distance> search;  // without control and levels
  DelegateName name;
  const u32 *nn_rows;     // normal vertices that have edges along nn
  const u32 *nn_offsets;  // by the same, with the end
  const u32 *nn_targets;
  u32 *frontier;  // bitmap, of delegates and normal vertices
  Lines changed[3];  // of a level and the next two, by all numbers
  u32 *found_here;  // bitmap of delegates: those whose parents this rank knows
  u32 *late;      // bitmap of delegates: what is visited after a second round's pull
  DelegateControl *control;
  DelegateLevel *levels;
  const Peer *peers;   // by rank; of this one nothing
  Arrival *arrivals;   // of even and odd rounds, by rank
  u32 *mail[2];        // delegates: bitmap, list; ghosts: bitmap, list; each of as many words
  u32 *sent;           // of even and odd rounds: found of each rank's, and delegates
  const u32 *stop;     // in host memory: not 0 if the search is to end
  u32 rank;
  u32 ranks;
  Region region;       // the delegates that it owns
  u32 delegate_words;
  u32 own_words;       // of delegates and normal vertices
  u32 ghost_words;
  u32 stage;
  u32 hosted;          // the host carries the mail: the launch ends when it is written
  u32 many_delegates;  // unvisited, from which on a pull takes two rounds, and may find much
  u32 nn_row_count;
};
