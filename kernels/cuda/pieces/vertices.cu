// What operations do with vertices alone.
#include "base/warp.cuh"
#include "base/work.cuh"

// List the vertices whose value is not `other`, in any order: of those in `places`, or of all if there are no places.
// Launched for whole warps.
template <class Value>
__global__ void list_others(const Value *values, Value other, const u32 *places, u64 count, u32 *list, u32 *listed) {
  FOR_STRIPS(strip, (count + 31) / 32) {
    const u64 at = strip * 32 + lane_id();
    const u32 vertex = at >= count ? NONE : places ? places[at] : (u32)at;
    const bool wanted = vertex != NONE && values[vertex] != other;
    const u32 who = __ballot_sync(ALL, wanted);
    if (!who) continue;
    u32 first = 0;
    if (lane_id() == 0) first = atomicAdd(listed, (u32)__popc(who));
    first = __shfl_sync(ALL, first, 0);
    if (wanted) list[first + __popc(who & lanes_before())] = vertex;
  }
}
