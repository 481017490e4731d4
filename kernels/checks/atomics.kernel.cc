#include "kernels/checks/atomics_args.h"
#include "kernels/device/portable.h"

namespace bimetal::kernels {

#if defined(__HIP__)
#define BM_ATOMIC(operation, T) \
  __hip_atomic_##operation(to, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT)
template <class T>
BM_INLINE void AtomicAdd(T* to, T value) {
  BM_ATOMIC(fetch_add, T);
}
template <class T>
BM_INLINE void AtomicMin(T* to, T value) {
  BM_ATOMIC(fetch_min, T);
}
template <class T>
BM_INLINE void AtomicMax(T* to, T value) {
  BM_ATOMIC(fetch_max, T);
}
template <class T>
BM_INLINE void AtomicXor(T* to, T value) {
  BM_ATOMIC(fetch_xor, T);
}
template <class T>
BM_INLINE T AtomicExchange(T* to, T value) {
  return BM_ATOMIC(exchange, T);
}
template <class T>
BM_INLINE void AtomicAddByCas(T* to, T value) {
  T seen = __hip_atomic_load(to, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  while (!__hip_atomic_compare_exchange_strong(to, &seen, static_cast<T>(seen + value),
                                               __ATOMIC_RELAXED, __ATOMIC_RELAXED,
                                               __HIP_MEMORY_SCOPE_AGENT)) {
  }
}
#elif defined(__CUDACC__)
// CUDA's functions know 64-bit numbers as unsigned long long.
BM_INLINE unsigned int* Native(uint32_t* at) { return at; }
BM_INLINE unsigned long long* Native(uint64_t* at) {
  return reinterpret_cast<unsigned long long*>(at);
}
BM_INLINE unsigned int NativeValue(uint32_t value) { return value; }
BM_INLINE unsigned long long NativeValue(uint64_t value) { return value; }
template <class T>
BM_INLINE void AtomicAdd(T* to, T value) {
  atomicAdd(Native(to), NativeValue(value));
}
template <class T>
BM_INLINE void AtomicMin(T* to, T value) {
  atomicMin(Native(to), NativeValue(value));
}
template <class T>
BM_INLINE void AtomicMax(T* to, T value) {
  atomicMax(Native(to), NativeValue(value));
}
template <class T>
BM_INLINE void AtomicXor(T* to, T value) {
  atomicXor(Native(to), NativeValue(value));
}
template <class T>
BM_INLINE T AtomicExchange(T* to, T value) {
  return atomicExch(Native(to), NativeValue(value));
}
template <class T>
BM_INLINE void AtomicAddByCas(T* to, T value) {
  T seen = *static_cast<volatile T*>(to);
  for (;;) {
    const T before =
        atomicCAS(Native(to), NativeValue(seen), NativeValue(static_cast<T>(seen + value)));
    if (before == seen) return;
    seen = before;
  }
}
#else
template <class T>
BM_INLINE void AtomicAdd(T* to, T value) {
  __atomic_fetch_add(to, value, __ATOMIC_RELAXED);
}
template <class T>
BM_INLINE void AtomicXor(T* to, T value) {
  __atomic_fetch_xor(to, value, __ATOMIC_RELAXED);
}
template <class T>
BM_INLINE T AtomicExchange(T* to, T value) {
  return __atomic_exchange_n(to, value, __ATOMIC_RELAXED);
}
// Replaces what is there by change(what is there).
template <class T, class Change>
BM_INLINE void AtomicChange(T* to, Change change) {
  T seen = __atomic_load_n(to, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(to, &seen, change(seen), false, __ATOMIC_RELAXED,
                                      __ATOMIC_RELAXED)) {
  }
}
template <class T>
BM_INLINE void AtomicMin(T* to, T value) {
  AtomicChange(to, [value](T seen) { return value < seen ? value : seen; });
}
template <class T>
BM_INLINE void AtomicMax(T* to, T value) {
  AtomicChange(to, [value](T seen) { return value > seen ? value : seen; });
}
template <class T>
BM_INLINE void AtomicAddByCas(T* to, T value) {
  AtomicChange(to, [value](T seen) { return static_cast<T>(seen + value); });
}
#endif

BM_INLINE void Meet(AtomicCell* cell, uint64_t value, bool contended) {
  const uint32_t low = static_cast<uint32_t>(value);
  AtomicAdd(&cell->add64, value);
  AtomicMin(&cell->min64, value);
  AtomicMax(&cell->max64, value);
  AtomicAdd(&cell->add32, low);
  AtomicMin(&cell->min32, low);
  AtomicMax(&cell->max32, low);
  AtomicXor(&cell->exchanged64, AtomicExchange(&cell->exchange64, value));
  AtomicXor(&cell->exchanged32, AtomicExchange(&cell->exchange32, low));
  // A whole device in one compare-and-swap loop would take forever: one thread a block does.
  if (contended && ThreadIndex() != 0) return;
  AtomicAddByCas(&cell->cas64, value);
  AtomicAddByCas(&cell->cas32, low);
}

BM_KERNEL bm_atomics(AtomicArgs args) {
  const uint64_t value = Alu(AtomicValue(args.seed, GlobalThread()));
  Meet(args.cells, value, true);
  Meet(args.cells + 1 + BlockIndex(), value, false);
  if (ThreadIndex() == 0) {
    args.records[BlockIndex()] = {Mix(args.token + BlockIndex()), UnitId()};
  }
}

}  // namespace bimetal::kernels

BM_MODULE(atomics, BM_ENTRY(bm_atomics, AtomicArgs))
