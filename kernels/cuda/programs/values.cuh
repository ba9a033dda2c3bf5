// Values of vertices, as programs read them, by vertex.
#include "base/work.cuh"

// As vertices follow each other.
template <class T>
struct InOrder {
  using Value = T;
  const T *values;

  __device__ T operator[](u32 vertex) const { return values[vertex]; }

  // Have those of `count` vertices in the block's own memory. Called by whole blocks, who meet afterwards. (Past the
  // nearest cache, where they would be in the way of what is read from anywhere.)
  __device__ void hold(T *held, u32 first, u32 count) const {
    const u32 whole = count * sizeof(T) / sizeof(uint4);
    const uint4 *const of = (const uint4 *)(values + first);
#pragma unroll 8
    for (u32 i = threadIdx.x; i < whole; i += blockDim.x) ((uint4 *)held)[i] = __ldcg(of + i);
    for (u32 i = whole * sizeof(uint4) / sizeof(T) + threadIdx.x; i < count; i += blockDim.x)
      held[i] = __ldcg(values + first + i);
  }
};

// Where the value of a vertex stands if they are dealt out to ranks in turn: those of a rank stand together. Layouts
// deal rows so where each rank has as many partitions, and a rank then writes side by side what is of its vertices.
// each: places of a rank. part: 2^64 / ranks, rounded up; there are two ranks or more.
struct Dealing {
  u64 part;
  u32 ranks;
  u32 each;

  __device__ u32 place(u32 vertex) const {
    const u32 turn = (u32)__umul64hi(vertex, part);  // vertex / ranks
    return (vertex - turn * ranks) * each + turn;
  }
};

template <class T>
struct Dealt {
  using Value = T;
  const T *values;
  Dealing dealing;

  __device__ T operator[](u32 vertex) const { return values[dealing.place(vertex)]; }

  __device__ void hold(T *held, u32 first, u32 count) const {
#pragma unroll 8
    for (u32 i = threadIdx.x; i < count; i += blockDim.x) held[i] = __ldcg(values + dealing.place(first + i));
  }
};
