// A thread-block cluster (compute capability 9.0): blocks that reach each other's shared memory
// and have a barrier of their own. A cluster of one block works on any device.
#include "base/warp.cuh"

#if __CUDA_ARCH__ >= 900
#define CLUSTER(blocks) __cluster_dims__(blocks, 1, 1)
#else
#define CLUSTER(blocks)
#endif

// Where `own`, in this block's shared memory, lies in that of block `block` of the cluster.
__device__ inline u32 mapped(const void *own, u32 block) {
  u32 address = 0;
#if __CUDA_ARCH__ >= 900
  asm("mapa.shared::cluster.u32 %0, %1, %2;"
      : "=r"(address)
      : "r"((u32)__cvta_generic_to_shared(own)), "r"(block));
#endif
  return address;
}

// Read what `own` names in the shared memory of block `block`.
template <int BLOCKS>
__device__ inline u32 read_from(const u32 *own, u32 block) {
#if __CUDA_ARCH__ >= 900
  if (BLOCKS > 1) {
    u32 value;
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(mapped(own, block)) : "memory");
    return value;
  }
#endif
  return *own;
}

template <int BLOCKS>
__device__ inline u64 read_from(const u64 *own, u32 block) {
#if __CUDA_ARCH__ >= 900
  if (BLOCKS > 1) {
    u64 value;
    asm volatile("ld.shared::cluster.u64 %0, [%1];" : "=l"(value) : "r"(mapped(own, block)) : "memory");
    return value;
  }
#endif
  return *own;
}

// Set a bit there, where `wanted`; gives what stood there before, ALL where not. A predicate and no
// branch: several of these are to be under way at once.
template <int BLOCKS>
__device__ inline u32 or_where(bool wanted, u32 *own, u32 block, u32 bit) {
#if __CUDA_ARCH__ >= 900
  if (BLOCKS > 1) {
    u32 before;
    asm volatile(
        "{ .reg .pred p; setp.ne.u32 p, %3, 0; mov.u32 %0, 0xffffffff;"
        "@p atom.shared::cluster.or.b32 %0, [%1], %2; }"
        : "=&r"(before)
        : "r"(mapped(own, block)), "r"(bit), "r"((u32)wanted)
        : "memory");
    return before;
  }
#endif
  return wanted ? atomicOr(own, bit) : ALL;
}

// The barrier of the cluster, which orders all memory.
template <int BLOCKS>
__device__ inline void cluster_sync() {
  __syncthreads();
#if __CUDA_ARCH__ >= 900
  if (BLOCKS > 1)
    asm volatile(
        "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;" ::
            : "memory");
#endif
}

// Where the blocks of a cluster meet, level after level, each bringing a number for all to read.
// What a block wrote to its shared memory before, all see after; nothing is said of other memory.
//
// The numbers arrive with the barrier, written to each block's shared memory, so that nobody has
// to fetch them. There are two places in turn: nobody comes to the one after next before all have
// left the present one.
template <int BLOCKS>
struct Meeting {
  u64 barrier[2];
  u32 brought[2][BLOCKS];

  // Called by all threads, before a cluster_sync.
  __device__ void open() {
#if __CUDA_ARCH__ >= 900
    if (BLOCKS > 1 && threadIdx.x < 2) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;"
                   "fence.mbarrier_init.release.cluster;" ::"r"(at(&barrier[threadIdx.x]))
                   : "memory");
    }
#endif
  }

  // Called by all threads, for their block. (The last warp sends: it is the one that is least likely
  // to have written anything whose arrival the fence would wait for.)
  __device__ void bring(u32 turn, const u32 &number) {
    __syncthreads();
    u32 block = threadIdx.x - (blockDim.x - 32);
    if (block >= BLOCKS) return;
    u32 place = turn & 1;
#if __CUDA_ARCH__ >= 900
    if (BLOCKS > 1) {
#if __CUDACC_VER_MAJOR__ >= 13  // waits for no writes to other memory
      asm volatile("fence.release.sync_restrict::shared::cta.cluster;" ::: "memory");
#else
      asm volatile("fence.acq_rel.cluster;" ::: "memory");
#endif
      if (block == 0)
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                         at(&barrier[place])),
                     "r"(BLOCKS * 4)
                     : "memory");
      asm volatile(
          "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(
              mapped(&brought[place][blockIdx.x], block)),
          "r"(number), "r"(mapped(&barrier[place], block))
          : "memory");
      return;
    }
#endif
    brought[place][0] = number;
  }

  // What block `block` brought.
  __device__ u32 wait(u32 turn, u32 block) {
    u32 place = turn & 1;
#if __CUDA_ARCH__ >= 900
    if (BLOCKS > 1) {
      asm volatile(
          "{ .reg .pred there;"
          "again: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 there, [%0], %1;"
          "@!there bra again; }" ::"r"(at(&barrier[place])),
          "r"(turn >> 1 & 1)
          : "memory");
      return brought[place][block];
    }
#endif
    __syncthreads();
    return brought[place][block];
  }

 private:
  __device__ static u32 at(const void *shared) { return (u32)__cvta_generic_to_shared(shared); }
};
