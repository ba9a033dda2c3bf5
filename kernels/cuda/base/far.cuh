// Memory of other devices, which read and write this one's.
#include "base/warp.cuh"

#define STOP_LOOKS 64  // at the others between two at whether to stop

// Memory that another device may have written, or has.
template <class T>
__device__ inline T far_load(const T *address) {
  return *(const volatile T *)address;
}

__device__ inline void release_far(u64 *address, u64 value) {
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(address), "l"(value) : "memory");
}

__device__ inline u64 acquire_far(const u64 *address) {
  u64 value;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(address) : "memory");
  return value;
}
