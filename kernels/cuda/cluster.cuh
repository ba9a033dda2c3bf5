// A thread-block cluster (compute capability 9.0): blocks that reach each other's shared memory
// and have a barrier of their own. A cluster of one block works on any device.
#include "common.cuh"

#if __CUDA_ARCH__ >= 900
#define CLUSTER(blocks) __cluster_dims__(blocks, 1, 1)
#else
#define CLUSTER(blocks)
#endif

// Where `own`, in this block's shared memory, lies in that of block `rank` of the cluster.
__device__ inline u32 mapped(const u32 *own, u32 rank) {
  u32 address = 0;
#if __CUDA_ARCH__ >= 900
  asm("mapa.shared::cluster.u32 %0, %1, %2;"
      : "=r"(address)
      : "r"((u32)__cvta_generic_to_shared(own)), "r"(rank));
#endif
  return address;
}

// Read what `own` names in the shared memory of block `rank`.
template <int BLOCKS>
__device__ inline u32 read_from(const u32 *own, u32 rank) {
#if __CUDA_ARCH__ >= 900
  if (BLOCKS > 1) {
    u32 value;
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(mapped(own, rank)) : "memory");
    return value;
  }
#endif
  return *own;
}

// Set a bit there; gives what stood there before.
template <int BLOCKS>
__device__ inline u32 or_to(u32 *own, u32 rank, u32 bits) {
#if __CUDA_ARCH__ >= 900
  if (BLOCKS > 1) {
    u32 before;
    asm volatile("atom.shared::cluster.or.b32 %0, [%1], %2;"
                 : "=r"(before)
                 : "r"(mapped(own, rank)), "r"(bits)
                 : "memory");
    return before;
  }
#endif
  return atomicOr(own, bits);
}

// The barrier in two halves: what a thread writes between them need not be seen yet.
template <int BLOCKS>
__device__ inline void cluster_arrive() {
#if __CUDA_ARCH__ >= 900
  if (BLOCKS > 1) asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
#endif
}

// The first half where only writes to shared memory have to be seen: it waits for no others.
template <int BLOCKS>
__device__ inline void cluster_arrive_shared() {
#if __CUDA_ARCH__ >= 900 && __CUDACC_VER_MAJOR__ >= 13
  if (BLOCKS > 1)
    asm volatile(
        "fence.release.sync_restrict::shared::cta.cluster;"
        "barrier.cluster.arrive.relaxed.aligned;" ::
            : "memory");
#else
  cluster_arrive<BLOCKS>();
#endif
}

template <int BLOCKS>
__device__ inline void cluster_wait() {
#if __CUDA_ARCH__ >= 900
  if (BLOCKS > 1) {
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
    return;
  }
#endif
  __syncthreads();
}
