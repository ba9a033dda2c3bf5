// What operations do with vertices alone.
#include "base/warp.cuh"
#include "base/work.cuh"

// Whole warps append, each lane its vertex where it is wanted.
__device__ inline void append(u32 *list, u32 *listed, u32 vertex, bool wanted) {
  const u32 who = __ballot_sync(ALL, wanted);
  if (!who) return;
  u32 first = 0;
  if (lane_id() == 0) first = atomicAdd(listed, (u32)__popc(who));
  first = __shfl_sync(ALL, first, 0);
  if (wanted) list[first + __popc(who & lanes_before())] = vertex;
}

// List the vertices whose value is not `other`, in any order: of those in `places`, or of all if there are no places.
// Launched for whole warps.
template <class Value>
__global__ void list_others(const Value *values, Value other, const u32 *places, u64 count, u32 *list, u32 *listed) {
  FOR_STRIPS(strip, (count + 31) / 32) {
    const u64 at = strip * 32 + lane_id();
    const u32 vertex = at >= count ? NONE : places ? places[at] : (u32)at;
    append(list, listed, vertex, vertex != NONE && values[vertex] != other);
  }
}

// List the vertices in `places` that have no bit in `marks` yet, and give them one.
__global__ void list_unmarked(const u32 *places, u64 count, u32 *marks, u32 *list, u32 *listed) {
  FOR_STRIPS(strip, (count + 31) / 32) {
    const u64 at = strip * 32 + lane_id();
    const u32 vertex = at >= count ? NONE : places[at], bit = 1u << vertex % 32;
    append(list, listed, vertex, vertex != NONE && !(atomicOr(marks + vertex / 32, bit) & bit));
  }
}

template <class Value>
__global__ void fill_places(const u32 *places, u64 count, Value value, Value *values) {
  FOR_ITEMS(at, count) values[places[at]] = value;
}
