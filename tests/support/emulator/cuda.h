// CUDA's words in C++, for kernels that run on the CPU: a fiber for each thread of a block, a thread
// of the system for each block. Fibers take turns where threads meet or wait.
// Addresses, counts and orders of work are those of a device of few threads; races need not show.
#include <sched.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#define __device__
#define __global__
#define __align__(...) alignas(__VA_ARGS__)
#define __grid_constant__
#define __launch_bounds__(...)
#define __noinline__ __attribute__((noinline))
#define __shared__ static thread_local
#define __CUDA_ARCH__ 800

struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};

namespace emulator {

const unsigned LANES = 32;
const size_t STACK = 256 << 10;

struct Dim {
  unsigned x;
};

// Fibers that meet: the last one to come lets all go on.
struct Meeting {
  unsigned alive, arrived;
  unsigned long long turn;

  void release() {
    if (arrived && arrived >= alive) arrived = 0, turn++;
  }
};

struct Warp {
  Meeting meeting;
  unsigned long long slot[2][LANES];
};

struct Fiber {
  void *stack_pointer;
  Dim thread;
  Warp *warp;
  unsigned parity;
  bool done;
};

struct Block {
  std::vector<Fiber> fibers;
  std::vector<Warp> warps;
  Meeting meeting;
  unsigned running;
  unsigned long long turns;
  void *outside;
  void (*body)(void *);
  void *argument;
  Dim index, size, grid;
};

inline thread_local Block *block;
inline thread_local Fiber *me;
inline thread_local char *shared;

// Save what a function keeps, and go on where another fiber left off.
extern "C" void emulator_switch(void **from, void *to);
asm(R"(
.text
.local emulator_switch
.type emulator_switch, @function
emulator_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
)");

inline void yield() {
  Fiber *from = me;
  Block &here = *block;
  do {
    if (++here.running == here.fibers.size()) here.running = 0;
  } while (here.fibers[here.running].done);
  me = &here.fibers[here.running];
  if (me != from) emulator_switch(&from->stack_pointer, me->stack_pointer);
}

// For another block, or rank, to do something.
inline void wait() {
  yield();
  if (++block->turns % 64 == 0) sched_yield();
}

// Now and then, after a block has waited: others are far ahead then, and may not have written yet
// what it has still to read.
inline void be_late() {
  static thread_local unsigned chance = block->index.x + 1;
  chance = chance * 1664525 + 1013904223;
  if (chance >> 25 == 0) usleep(5000);
}

inline void meet(Meeting &meeting) {
  const unsigned long long turn = meeting.turn;
  meeting.arrived++;
  meeting.release();
  while (meeting.turn == turn) yield();
}

inline void run_fiber() {
  Block &here = *block;
  here.body(here.argument);
  me->done = true;
  for (Meeting *some : {&here.meeting, &me->warp->meeting}) some->alive--, some->release();
  void *nowhere;
  for (const Fiber &fiber : here.fibers)
    if (!fiber.done) yield();  // not to come back
  emulator_switch(&nowhere, here.outside);
}

inline void run_block(unsigned index, unsigned grid, unsigned threads, size_t shared_bytes,
                      void (*body)(void *), void *argument) {
  Block here;
  here.fibers.resize(threads);
  here.warps.resize((threads + LANES - 1) / LANES);
  const std::unique_ptr<char[]> stacks(new char[threads * STACK]);  // touched where it is used
  std::vector<char> dynamic(shared_bytes + 128, (char)0xa5);
  here.meeting = {threads, 0, 0};
  here.running = 0, here.turns = 0;
  here.body = body, here.argument = argument;
  here.index = {index}, here.size = {threads}, here.grid = {grid};
  for (unsigned i = 0; i < threads; i++) {
    Fiber &fiber = here.fibers[i];
    fiber = {nullptr, {i}, &here.warps[i / LANES], 0, false};
    fiber.warp->meeting.alive++;
    char *top = stacks.get() + (i + 1) * STACK;
    void **frame = (void **)((size_t)top / 16 * 16) - 8;
    frame[6] = (void *)run_fiber;  // below it what emulator_switch takes back
    fiber.stack_pointer = frame;
  }
  Block *block_before = block;
  Fiber *fiber_before = me;
  char *shared_before = shared;
  block = &here, me = &here.fibers[0];
  shared = (char *)(((size_t)dynamic.data() + 127) / 128 * 128);
  emulator_switch(&here.outside, me->stack_pointer);
  block = block_before, me = fiber_before, shared = shared_before;
}

template <class... A>
void launch(void (*kernel)(A...), unsigned grid, unsigned threads, size_t shared_bytes,
            void **arguments) {
  auto body = [=]() {
    [&]<size_t... I>(std::index_sequence<I...>) {
      kernel(*(std::remove_cv_t<std::remove_reference_t<A>> *)arguments[I]...);
    }(std::index_sequence_for<A...>());
  };
  auto call = [](void *some) { (*(decltype(body) *)some)(); };
  std::vector<std::thread> blocks;
  for (unsigned i = 0; i < grid; i++)
    blocks.emplace_back(run_block, i, grid, threads, shared_bytes, +call, (void *)&body);
  for (std::thread &some : blocks) some.join();
}

template <class T>
unsigned long long *publish(T value) {
  Fiber &own = *me;
  own.parity ^= 1;
  unsigned long long *slots = own.warp->slot[own.parity];
  memcpy(&slots[own.thread.x % LANES], &value, sizeof value);
  meet(own.warp->meeting);
  return slots;
}

template <class T>
T taken(const unsigned long long *slots, unsigned lane) {
  T value;
  memcpy(&value, &slots[lane % LANES], sizeof value);
  return value;
}

}  // namespace emulator

#define threadIdx (emulator::me->thread)
#define blockIdx (emulator::block->index)
#define blockDim (emulator::block->size)
#define gridDim (emulator::block->grid)

inline void __syncthreads() { emulator::meet(emulator::block->meeting); }
inline void __syncwarp() { emulator::meet(emulator::me->warp->meeting); }
inline void __threadfence() { __sync_synchronize(); }
inline void __threadfence_system() { __sync_synchronize(); }

template <class T>
T __shfl_sync(unsigned, T value, unsigned lane) {
  return emulator::taken<T>(emulator::publish(value), lane);
}
template <class T>
T __shfl_up_sync(unsigned, T value, unsigned step) {
  const unsigned lane = threadIdx.x % emulator::LANES;
  return emulator::taken<T>(emulator::publish(value), lane < step ? lane : lane - step);
}
template <class T>
T __shfl_xor_sync(unsigned, T value, unsigned mask) {
  return emulator::taken<T>(emulator::publish(value), threadIdx.x % emulator::LANES ^ mask);
}
inline unsigned __ballot_sync(unsigned, bool mine) {
  const unsigned long long *slots = emulator::publish<unsigned long long>(mine);
  unsigned found = 0;
  for (unsigned i = 0; i < emulator::LANES; i++) found |= (unsigned)(slots[i] & 1) << i;
  return found;
}
inline bool __any_sync(unsigned mask, bool mine) { return __ballot_sync(mask, mine); }
inline unsigned __reduce_add_sync(unsigned, unsigned value) {
  const unsigned long long *slots = emulator::publish<unsigned long long>(value);
  unsigned sum = 0;
  for (unsigned i = 0; i < emulator::LANES; i++) sum += (unsigned)slots[i];
  return sum;
}
inline unsigned __reduce_max_sync(unsigned, unsigned value) {
  const unsigned long long *slots = emulator::publish<unsigned long long>(value);
  unsigned most = 0;
  for (unsigned i = 0; i < emulator::LANES; i++) most = std::max(most, (unsigned)slots[i]);
  return most;
}

template <class T>
T __ldg(const T *address) { return *address; }
template <class T>
T __ldcg(const T *address) { return *(const volatile T *)address; }
template <class T>
T __ldca(const T *address) { return *(const volatile T *)address; }
inline uint2 __ldcg(const uint2 *address) { return {__ldcg(&address->x), __ldcg(&address->y)}; }
inline uint4 __ldcg(const uint4 *address) { return *address; }
template <class T>
T __ldcs(const T *address) { return *(const volatile T *)address; }
inline uint2 __ldcs(const uint2 *address) { return {__ldcs(&address->x), __ldcs(&address->y)}; }
template <class T>
void __stcs(T *address, T value) { *(volatile T *)address = value; }
inline unsigned long long __umul64hi(unsigned long long one, unsigned long long other) {
  return (unsigned __int128)one * other >> 64;
}
inline int __popc(unsigned word) { return __builtin_popcount(word); }
inline int __ffs(unsigned word) { return __builtin_ffs((int)word); }
inline int __clz(unsigned word) { return word ? __builtin_clz(word) : 32; }
inline size_t __cvta_generic_to_shared(const void *) { abort(); }  // of clusters, not here
inline long long __double_as_longlong(double value) { return __builtin_bit_cast(long long, value); }
inline double __dmul_rn(double one, double other) { return one * other; }
inline double __dsub_rn(double one, double other) { return one - other; }
inline double __longlong_as_double(long long bits) { return __builtin_bit_cast(double, bits); }
inline unsigned __float_as_uint(float value) { return __builtin_bit_cast(unsigned, value); }
inline long long clock64() { return __builtin_ia32_rdtsc(); }

template <class T, class U>
T atomicAdd(T *address, U value) { return __atomic_fetch_add(address, (T)value, __ATOMIC_SEQ_CST); }
inline double atomicAdd(double *address, double value) {
  auto *word = (unsigned long long *)address;
  unsigned long long now = __atomic_load_n(word, __ATOMIC_SEQ_CST);
  while (!__atomic_compare_exchange_n(
      word, &now, (unsigned long long)__double_as_longlong(__longlong_as_double(now) + value), false,
      __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
  }
  return __longlong_as_double(now);
}
template <class T, class U>
T atomicSub(T *address, U value) { return __atomic_fetch_sub(address, (T)value, __ATOMIC_SEQ_CST); }
template <class T, class U>
T atomicOr(T *address, U value) { return __atomic_fetch_or(address, (T)value, __ATOMIC_SEQ_CST); }
template <class T, class U>
T atomicExch(T *address, U value) { return __atomic_exchange_n(address, (T)value, __ATOMIC_SEQ_CST); }
template <class T, class U, class V>
T atomicCAS(T *address, U from, V to) {
  T now = (T)from;
  __atomic_compare_exchange_n(address, &now, (T)to, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  return now;
}
template <class T, class U>
T atomicMin(T *address, U value) {
  T now = __atomic_load_n(address, __ATOMIC_SEQ_CST);
  while ((T)value < now && !__atomic_compare_exchange_n(address, &now, (T)value, false,
                                                        __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
  }
  return now;
}
template <class T, class U>
T atomicMax(T *address, U value) {
  T now = __atomic_load_n(address, __ATOMIC_SEQ_CST);
  while (now < (T)value && !__atomic_compare_exchange_n(address, &now, (T)value, false,
                                                        __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
  }
  return now;
}

template <class T, class U>
std::common_type_t<T, U> min(T one, U other) {
  const std::common_type_t<T, U> a = one, b = other;
  return b < a ? b : a;
}
template <class T, class U>
std::common_type_t<T, U> max(T one, U other) {
  const std::common_type_t<T, U> a = one, b = other;
  return a < b ? b : a;
}
