// The operation `gather` on a device (pipeline/engines/one_device/operations.py), in one launch.
#include "walks/gather.cuh"

// Add to y[v], for each vertex v, what edges bring from x. In: how the rows stand, InRows<Offset, TIERED> or Tiles.
// arrived: of the grid's barrier.
template <class In, class Operator, class Value, int THREADS, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS)
    gather_values(const __grid_constant__ In in, const Operator along, const Value *x, double *y, u64 *arrived) {
  gather_all(in, along, InOrder<Value>{x}, arrived, [&](const auto &vertices, const auto &came) {
    for (u32 k = 0; k < sizeof vertices / sizeof *vertices; k++)
      if (vertices[k] != NONE) y[vertices[k]] += came[k];
  });
}
