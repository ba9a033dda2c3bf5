// From the stored tiles of a rank's partitions to its rows: see grid.cuh for how it numbers vertices.
#include "rows/made_rows.cuh"

// Numbers of the places in a grid row or column, which its partitions take turns to fill. firsts:
// numbers at which these begin.
struct Turns {
  const u32 *firsts;
  u32 partitions;

  __device__ u32 operator()(u32 place) const {
    return firsts[place % partitions] + place / partitions;
  }
};

// rows: of the tile's grid column; targets: of its grid row.
template <class Offset, class From>
__global__ void place_tile(const Shard<From> shard, const MadeRows<Offset> to, const Turns rows,
                           const Turns targets) {
  place(shard, to, rows, targets);
}
