// How long the phases of a superstep take.
#include "base/common.cuh"

// Following edges, writing mail, waiting for the other ranks, reading theirs, noting what is new.
enum Phase : u32 { VISIT, WRITE, WAIT, READ, NOTE, PHASES };

struct Laps {
  u64 since;  // the end of the last phase
  u64 clocks[PHASES];

  __device__ void begin() {
    for (int i = 0; i < PHASES; i++) clocks[i] = 0;
    since = clock64();
  }

  __device__ void end(Phase phase) {
    const u64 now = clock64();
    clocks[phase] += now - since;
    since = now;
  }

  __device__ void copy_to(u64 *record) const {
    for (int i = 0; i < PHASES; i++) record[i] = clocks[i];
  }
};
