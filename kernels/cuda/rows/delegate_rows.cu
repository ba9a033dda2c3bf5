// From the stored subgraphs of a rank's partitions to its rows: see delegates.cuh for how it numbers
// vertices.
#include "rows/made_rows.cuh"

// The normal vertices of a partition, and those of its owner that this rank has as ghosts.
struct Owner {
  u32 first;   // the number, as its owner counts, that the partition's vertices count from
  u32 marked;  // bits of other owners before this one's, in the bitmap of all; a multiple of 1024
  u32 before;  // ghosts in that bitmap before this owner's
  u32 ghosts;  // the first of its ghosts, as the rank numbers them
};

struct Owners {
  const Owner *of;  // by partition
  u32 partitions;
  u32 ranks;
  u32 rank;
  u32 normals;  // the first normal vertex, as each rank numbers its own

  __device__ bool own(u32 vertex) const { return vertex % partitions % ranks == rank; }

  // A vertex's number, as its owner counts, and where it stands in the bitmap of all.
  __device__ u32 number(u32 vertex) const {
    return of[vertex % partitions].first + vertex / partitions;
  }

  __device__ u32 bit(u32 vertex) const {
    return of[vertex % partitions].marked + number(vertex) - normals;
  }
};

__device__ inline void set_bit(u32 *bitmap, u32 place) {
  const u32 bit = 1u << (place & 31);
  if (!(bitmap[place >> 5] & bit)) atomicOr(&bitmap[place >> 5], bit);
}

// Numbers of a subgraph's rows, or targets: by a table, or else each with `plus`.
struct Numbers {
  const u32 *table;
  long long plus;

  __device__ u32 operator()(u32 i) const { return table ? table[i] : (u32)(i + plus); }
};

template <class Offset, class From>
__global__ void place_targets(const Shard<From> shard, const MadeRows<Offset> to,
                              const Numbers rows, const Numbers targets) {
  place(shard, to, rows, targets);
}

// Mark those of some targets, global ids, that other ranks own, in the bitmap of all owned vertices.
__global__ void mark_ghosts(const u32 *__restrict__ targets, u64 count, const Owners owners,
                            u32 *marked) {
  FOR_ITEMS(i, count) {
    if (!owners.own(targets[i])) set_bit(marked, owners.bit(targets[i]));
  }
}

// Targets, global ids, become the rank's own numbers. before: ghosts before each word of `marked`.
__global__ void number_targets(u32 *targets, u64 count, const Owners owners,
                               const u32 *__restrict__ marked, const u32 *__restrict__ before) {
  FOR_ITEMS(i, count) {
    const u32 vertex = targets[i];
    if (owners.own(vertex)) {
      targets[i] = owners.number(vertex);
      continue;
    }
    const Owner &owner = owners.of[vertex % owners.partitions];
    const u32 bit = owners.bit(vertex), below = marked[bit >> 5] & ((1u << (bit & 31)) - 1);
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
