// PageRank: pipeline/algorithms/pagerank.py says what is computed, kernels/programs/walk.py how on a CPU.
// An iteration gathers shares along all rows (walks/gather.cuh) and makes new ones of them; a launch does many
// of them, and the grid meets once in each, beside the meetings of a gather. Shares are floats of 64 bits, or of
// 32, of which a cache holds twice as many; what is made of them is added up in 64 bits.
#include "walks/gather.cuh"

struct Control {
  u64 arrived;
  double lost;    // what vertices without edges hold
  double change;  // of the last iteration, in L1
  u32 done;       // iterations, of this launch
  u32 turn;       // which of the shares are the current ones
  u32 stop;       // after which of them: the time of the launch is over then
  u32 stopped;    // whether another rank has failed
  u64 round;      // of meetings with other ranks, the last one
};

// degree: of a vertex the edges that leave it, or their weights added up. shares: what each carries, by
// its weight; of vertices without any, all that they have. likely: how likely a walk is at each vertex
// when it teleports; null: `even` at all. block_sums: twice of each block. changes, clocks: of each iteration
// of this launch. iterations: at most. time: of the launch, in clocks, about.
template <class Share>
struct Walk {
  const double *degree;
  Share *shares[2];
  const double *likely;
  Pair *block_sums;
  Control *control;
  double *changes;
  u64 *clocks;
  double damping;
  double even;
  double tolerance;  // less than 0 where there is none
  u64 time;
  u32 iterations;
  u32 keeps;  // whether walks teleport from vertices without edges, rather than end there
};

// The share that what came to a vertex makes of the one before; adds to the change, and to what is lost.
template <class Share>
__device__ inline Share advance(const Walk<Share> &walk, double before, double degree, double anywhere,
                                u32 vertex, double came, Pair &moved) {
  const double shares = degree == 0 ? 1 : degree;
  const double rank = walk.damping * came + anywhere * (walk.likely ? walk.likely[vertex] : walk.even);
  const Share now = rank / shares;
  moved += {fabs(rank - before * shares), walk.keeps && degree == 0 ? now : 0};
  return now;
}

// The same of several vertices, whose loads are under way at once; NONE is none. Calls `put(k, share)`.
template <u32 MANY, class Share, class Shares, class Put>
__device__ inline void advance_some(const Walk<Share> &walk, const Shares &share, double anywhere,
                                    const u32 (&vertex)[MANY], const double (&came)[MANY], Pair &moved, Put put) {
  double before[MANY], degree[MANY];
#pragma unroll
  for (u32 k = 0; k < MANY; k++) {
    const bool any = vertex[k] != NONE;
    before[k] = any ? share[vertex[k]] : 0, degree[k] = any ? walk.degree[vertex[k]] : 0;
  }
#pragma unroll
  for (u32 k = 0; k < MANY; k++)
    if (vertex[k] != NONE)
      put(k, advance(walk, before[k], degree[k], anywhere, vertex[k], came[k], moved));
}
