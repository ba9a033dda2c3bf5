// What is found out about labels on a device: pipeline/algorithms/labelling.py has the definitions.
#include "base/warp.cuh"
#include "base/work.cuh"

// Mark the labels that occur: 1.
__global__ void mark_labels(const u32 *label, u32 count, u32 *marks) { FOR_ITEMS(i, count) marks[label[i]] = 1; }

// Of each label the least value, or the least place.
__global__ void least_by_label(const u32 *label, const u32 *values, u32 count, u32 *least) {
  FOR_ITEMS(i, count) {
    const u32 value = values ? values[i] : (u32)i;
    if (value < least[label[i]]) atomicMin(least + label[i], value);
  }
}

// Add values, or 1 each, to the sums of their labels. Neighbouring values often have the same one: the first lane adds for those.
__global__ void add_by_label(const u32 *label, const u64 *values, u32 count, u64 *sums) {
  FOR_STRIPS(strip, (count + 31) / 32) {
    const u64 i = 32 * strip + lane_id();
    const u32 own = i < count ? label[i] : NONE, first = __shfl_sync(ALL, own, 0);
    const u64 value = i >= count ? 0 : values ? values[i] : 1;
    u64 all = own == first ? value : 0;
    for (u32 step = 16; step; step /= 2) all += __shfl_xor_sync(ALL, all, step);
    if (i < count && (lane_id() == 0 || own != first)) atomicAdd(sums + own, lane_id() == 0 ? all : value);
  }
}
