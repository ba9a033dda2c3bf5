// What the rows of a graph lead to.
#include "base/common.cuh"

// Compressed sparse rows. Entries from `near_end` on are read from `far`, pinned host memory;
// `near`, on the device, holds those before. (One tier: near_end counts all of them.)
struct Targets {
  const u32 *near;
  const u32 *far;
  u64 near_end;
};

template <bool TIERED>
__device__ inline u32 entry(const Targets &targets, u64 i) {
  if (TIERED && i >= targets.near_end) return __ldg(targets.far + (i - targets.near_end));
  return __ldg(targets.near + i);
}

// The same for whoever will not look at it again before long: caches keep what else they have.
template <bool TIERED>
__device__ inline u32 entry_once(const Targets &targets, u64 i) {
  if (TIERED && i >= targets.near_end) return __ldcs(targets.far + (i - targets.near_end));
  return __ldcs(targets.near + i);
}
