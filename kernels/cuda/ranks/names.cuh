// What ranks call vertices by among each other: from a rank's number to the global id.
#include "base/common.cuh"

// The partition that some numbers belong to.
struct Part {
  u32 first;  // number that its vertices count from
  u32 partition;
};

struct Parts {
  const Part *of;  // each 1024 numbers
  u32 partitions;

  __device__ u32 global_id(u32 vertex) const {
    const Part part = of[vertex >> 10];
    return (vertex - part.first) * partitions + part.partition;
  }
};
