// From the stored subgraphs of a rank's partitions to its rows: see rank.cuh for how it numbers
// vertices.
#include "work.cuh"

// The vertices that a rank owns, and those of them that another rank has as ghosts.
struct Owner {
  u32 parts;    // partitions
  u32 skipped;  // leading vertices that are delegates
  u32 first;    // of its vertices, in the bitmap of all that are owned; a multiple of 32
  u32 before;   // ghosts in that bitmap before it
  u32 ghosts;   // the first of its ghosts, as the rank numbers them
  u32 unused;
};

struct Ranks {
  const Owner *owners;
  u32 partitions;
  u32 ranks;
  u32 rank;
  u32 normals;  // the first normal vertex, as each rank numbers its own
};

// The place of a vertex among those that its rank owns.
__device__ inline u32 own_place(const Ranks &ranks, u32 vertex, u32 &rank) {
  const u32 partition = vertex % ranks.partitions;
  rank = partition % ranks.ranks;
  const Owner &owner = ranks.owners[rank];
  return vertex / ranks.partitions * owner.parts + partition / ranks.ranks - owner.skipped;
}

__device__ inline void set_bit(u32 *bitmap, u32 place) {
  const u32 bit = 1u << (place & 31);
  if (!(bitmap[place >> 5] & bit)) atomicOr(&bitmap[place >> 5], bit);
}

// Write the targets of a shard to the rows that they belong to. Row i of the subgraph is row
// i * step + first, which goes on at its `fill`. A target t becomes t * times + plus.
template <class Offset, class From>
__global__ void place_targets(const u32 *__restrict__ shard, u64 begin, u64 count,
                              const From *__restrict__ offsets, u32 rows, u32 step, long long first,
                              const Offset *__restrict__ fill, u32 times, u32 plus,
                              u32 *__restrict__ near, u64 near_end, u32 *far) {
  FOR_ITEMS(i, count) {
    const u64 edge = begin + i;
    const u32 own = row_of(offsets, 0, rows, edge);
    const u64 row = (u64)((long long)own * step + first);
    const u64 at = (u64)fill[row] + (edge - offsets[own]);
    const u32 target = shard[i] * times + plus;
    if (at < near_end)
      near[at] = target;
    else
      far[at - near_end] = target;
  }
}

// Mark those of some targets, global ids, that other ranks own, in the bitmap of all owned vertices.
__global__ void mark_ghosts(const u32 *__restrict__ targets, u64 count, const Ranks ranks, u32 *marked) {
  FOR_ITEMS(i, count) {
    u32 rank;
    const u32 place = own_place(ranks, targets[i], rank);
    if (rank != ranks.rank) set_bit(marked, ranks.owners[rank].first + place);
  }
}

// Targets, global ids, become the rank's own numbers. before: ghosts before each word of `marked`.
__global__ void number_targets(u32 *targets, u64 count, const Ranks ranks,
                               const u32 *__restrict__ marked, const u32 *__restrict__ before) {
  FOR_ITEMS(i, count) {
    u32 rank;
    const u32 place = own_place(ranks, targets[i], rank);
    if (rank == ranks.rank) {
      targets[i] = ranks.normals + place;
      continue;
    }
    const Owner &owner = ranks.owners[rank];
    const u32 bit = owner.first + place, below = marked[bit >> 5] & ((1u << (bit & 31)) - 1);
    targets[i] = owner.ghosts + before[bit >> 5] + __popc(below) - owner.before;
  }
}

// The ghosts of one owner, as it numbers them. words: of the bitmap, from word `first` on.
__global__ void list_ghosts(const u32 *__restrict__ marked, const u32 *__restrict__ before, u64 first,
                            u64 words, u32 normals, u32 *list) {
  FOR_ITEMS(i, words) {
    u32 at = before[first + i] - before[first];
    for (u32 open = marked[first + i]; open; open &= open - 1)
      list[at++] = normals + (u32)i * 32 + __ffs(open) - 1;
  }
}
