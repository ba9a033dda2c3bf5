// What ranks call vertices by among each other: from a rank's number to the global id.
#include "base/common.cuh"

// Where some numbers come from.
struct Origin {
  u32 first;  // number that the partition's vertices count from
  u32 partition;
};

struct GlobalIds {
  const Origin *origins;  // of each 1024 numbers
  u32 partitions;

  __device__ u32 of(u32 vertex) const {
    const Origin origin = origins[vertex >> 10];
    return (vertex - origin.first) * partitions + origin.partition;
  }
};
