// PageRank on one device: many iterations are one launch.
#include "walks/pagerank.cuh"

// In: how the rows stand, InRows<Offset, TIERED> or Tiles.
template <class In, class Operator, class Share, int THREADS, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS)
    pagerank(const __grid_constant__ In in, const Operator along, const Walk<Share> walk) {
  Control &control = *walk.control;
  Pair all = {control.change, control.lost};
  u32 turn = control.turn, done = 0;
  const u64 launched = clock64();
  while (done < walk.iterations) {
    const u64 began = clock64();
    // (Not by the read-only cache: what it has of them is of the iteration before the last.)
    const InOrder<Share> share{turn ? walk.shares[1] : walk.shares[0]};
    Share *const next = turn ? walk.shares[0] : walk.shares[1];
    turn ^= 1;
    const double anywhere = 1 - walk.damping + walk.damping * all.other;
    Pair moved = {0, 0};
    gather_all(in, along, share, &control.arrived, [&](const auto &vertices, const auto &came) {
      auto put = [&](u32 k, Share now) { next[vertices[k]] = now; };
      advance_some(walk, share, anywhere, vertices, came, moved, put);
    });
    moved = block_sum(moved);
    Pair *const sums = walk.block_sums + (done & 1) * gridDim.x;  // those before may still be read
    if (threadIdx.x == 0) sums[blockIdx.x] = moved;
    if (first_item() == 0) control.stop = began - launched >= walk.time ? done + 1 : 0;
    grid_barrier(&control.arrived);
    all = sum_of_blocks(sums);
    if (first_item() == 0) walk.changes[done] = all.one, walk.clocks[done] = clock64() - began;
    done++;
    if (all.one < walk.tolerance || __ldcg(&control.stop) == done) break;
  }
  if (first_item() == 0) {
    control.lost = all.other, control.change = all.one;
    control.done = done, control.turn = turn;
  }
}
