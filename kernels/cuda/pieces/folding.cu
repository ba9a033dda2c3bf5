// Values by vertex that several ranks have, each its own, combined in each other's memory. Each rank combines a part of
// them; then it copies the others' parts.
#include "programs/meeting.cuh"

struct Add {
  template <class W>
  __device__ W operator()(W left, W right) const {
    return left + right;
  }
};

struct Least {
  template <class W>
  __device__ W operator()(W left, W right) const {
    return min(left, right);
  }
};

struct Either {
  template <class W>
  __device__ W operator()(W left, W right) const {
    return left | right;
  }
};

struct Said {
  u64 numbers[SAID];
};

// Tell all ranks some numbers, and wait for theirs. What kernels have written before, other ranks can read afterwards.
// Launched as one block.
__global__ void meet_ranks(const __grid_constant__ Meeting meeting, u64 round, const __grid_constant__ Said said) {
  meet(meeting, round, said.numbers);
}

// Combine the values from `first` on, before `last`, of all ranks, in the order of ranks, into those of this rank.
template <class W, class Fold>
__global__ void fold_part(W *const *values, u32 rank, u32 ranks, u64 first, u64 last) {
  const Fold fold;
  FOR_ITEMS(i, last - first) {
    W whole = __ldcg(values[0] + first + i);
    for (u32 peer = 1; peer < ranks; peer++) whole = fold(whole, __ldcg(values[peer] + first + i));
    values[rank][first + i] = whole;
  }
}

// Copy another rank's values from `first` on, before `last`.
template <class W>
__global__ void copy_part(W *const *values, u32 rank, u32 peer, u64 first, u64 last) {
  FOR_ITEMS(i, last - first) values[rank][first + i] = __ldcg(values[peer] + first + i);
}
