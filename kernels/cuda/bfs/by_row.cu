// What a search found, in the order of the rows of a result. The definition is NumPy's indexing.
#include "bfs/check.cuh"

template <class Value>
__global__ void values_by_row(const Value *value, const u32 *place, u64 rows, Value *found) {
  FOR_ITEMS(row, rows) found[row] = value[place[row]];
}

// known: receives a bit for each row, whether it has a distance.
template <class Distance>
__global__ void distances_by_row(const Distance *distance, const u32 *place, u64 rows, int *found,
                                 u32 *known) {
  FOR_STRIPS(strip, (rows + 31) / 32) {
    const u64 row = strip * 32 + lane_id();
    const int own = row < rows ? level(distance[place[row]]) : -1;
    if (row < rows) found[row] = own;
    const u32 some = __ballot_sync(ALL, own >= 0);
    if (lane_id() == 0) known[strip] = some;
  }
}

__global__ void number_rows(const u32 *place, u64 rows, u32 *row_at) {
  FOR_ITEMS(row, rows) row_at[place[row]] = (u32)row;
}

// found: the row of a vertex's parent, -1 where there is none.
__global__ void parents_by_row(const u32 *parent, const u32 *place, const u32 *row_at, u64 rows,
                               long long *found) {
  FOR_ITEMS(row, rows) {
    const u32 own = parent[place[row]];
    found[row] = own == NONE ? -1 : (long long)row_at[own];
  }
}
