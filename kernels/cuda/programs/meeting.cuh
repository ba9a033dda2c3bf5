// Ranks that meet in the middle of a launch: each tells all others some numbers, in their memory.
#include "base/far.cuh"
#include "base/work.cuh"

#define SAID 7

// gpu_programs/meeting.py packs the same structures.
struct Arrival {
  u64 round;
  u64 said[SAID];
};

// tell: by rank, where it hears of this one; heard: by rank, what this one hears; of even and of odd
// rounds. stop: in host memory; not 0 if nobody is to wait any more.
struct Meeting {
  Arrival *const *tell;
  const Arrival *heard;
  const u32 *stop;
  u32 rank;
  u32 ranks;

  // What a rank has said in a round, until the next one but one.
  __device__ const Arrival *of(u32 peer, u64 round) const { return heard + 2 * peer + (round & 1); }
};

// Tell all ranks what the block's first thread says, and wait for them; whether all came. What a rank's threads
// have written before, with a system-wide fence, others can read then. Called by a block; round: from 1 on.
__device__ inline bool meet(const Meeting &meeting, u64 round, const u64 (&said)[SAID]) {
  __shared__ u32 stopped;
  __shared__ u64 same[SAID];  // clocks, for one, differ from thread to thread
  if (threadIdx.x == 0) {
    stopped = 0;
    for (u32 i = 0; i < SAID; i++) same[i] = said[i];
  }
  __syncthreads();
  for (u32 peer = threadIdx.x; peer < meeting.ranks; peer += blockDim.x) {
    Arrival *there = meeting.tell[peer] + (round & 1);
    for (u32 i = 0; i < SAID; i++) there->said[i] = same[i];
    __threadfence_system();
    release_far(&there->round, round);
    const Arrival *arrival = meeting.of(peer, round);
    for (u32 looks = 1; acquire_far(&arrival->round) != round; looks++)
      if (looks % STOP_LOOKS == 0 && far_load(meeting.stop)) {
        stopped = 1;
        break;
      }
  }
  __syncthreads();
  const bool all = !stopped;
  __syncthreads();  // before the next meeting
  return all;
}
