/* What emitted kernels are written against: CUDA itself, or, under a host compiler, the emulator.

   Kernels use CUDA's own names wherever there are some; the macros below stand where the emulator must see what happens. */
#ifndef TEXPR_DEVICE_H
#define TEXPR_DEVICE_H

#if !defined(__CUDACC__)
#define TX_FUSES 1 /* the emulator rounds as a device does, whatever the machine that it runs on */
#endif

#include "texpr_vector.h"
#include "texpr_tensor.h"

/* Lanes of a warp: 32, as every CUDA device has, where the text that includes this says no other number. */
#ifndef TX_WARP
#define TX_WARP 32u
#endif

#if !defined(__CUDACC__)
#include "texpr_emulator.h"
#else

#define TX_GLOBAL(T) T *__restrict__
/* Memory that an earlier launch may write while the kernel runs: of a `const` pointer that is `__restrict__` the compiler takes that
   nobody does, and may read before a wait what comes behind it. */
#define TX_COMMON(T) T *
#define TX_SHARED(T, NAME, COUNT) __shared__ __align__(16) T NAME[COUNT]
#define TX_SHARED_ALIGNED(T, NAME, COUNT, ALIGN) __shared__ __align__(ALIGN) T NAME[COUNT]
#define TX_BARRIERS(NAME, COUNT) __shared__ __align__(16) uint64_t NAME[COUNT]
#define TX_LOCAL(T, NAME, COUNT) T NAME[COUNT]
#define TX_LANES(T, NAME, COUNT) T NAME[COUNT] = {}

/* Arrays at places of their own in one block of shared memory, where some lie in the same bytes at different times. Beyond what a
   kernel may declare the launch gives the block's size. */
#define TX_SHARED_ARENA(BYTES) __shared__ __align__(1024) unsigned char tx_shared_block[BYTES]
#define TX_SHARED_BLOCK(BYTES) extern __shared__ __align__(1024) unsigned char tx_shared_block[]
#define TX_SHARED_AT(T, NAME, COUNT, ALIGN, OFFSET) T *const NAME = reinterpret_cast<T *>(tx_shared_block + (OFFSET))
#define TX_BARRIERS_AT(NAME, COUNT, OFFSET) uint64_t *const NAME = reinterpret_cast<uint64_t *>(tx_shared_block + (OFFSET))
#define TX_AT(LINE)
#define TX_EXPORT(KERNEL)
#define TX_SOURCE(FILE)

/* An update as one step, of an order and a scope. PTX ISA, "red". */
#define TX_RED(VERB, CONSTRAINT, SAME, AT, VALUE) asm volatile(VERB " [%0], %1;" ::"l"(AT), CONSTRAINT(VALUE) : "memory")

/* Sums of 2 or 4 floats side by side in global memory, each as one step. PTX ISA, "red": .vec_32_bit, of sm_90 and later. */
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#define TX_RED_VECTORS(ORDER, SCOPE) \
    TX_FN void tx_red_add_##ORDER##_##SCOPE(float *at, float a, float b) { \
        asm volatile("red." #ORDER "." #SCOPE ".global.add.v2.f32 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(at)), "f"(a), \
                     "f"(b) \
                     : "memory"); \
    } \
    TX_FN void tx_red_add_##ORDER##_##SCOPE(float *at, float a, float b, float c, float d) { \
        asm volatile("red." #ORDER "." #SCOPE ".global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(at)), \
                     "f"(a), "f"(b), "f"(c), "f"(d) \
                     : "memory"); \
    }
TX_RED_VECTORS(relaxed, cluster)
TX_RED_VECTORS(release, cluster)
#else
#define TX_RED_ONE(ORDER, SCOPE, AT, VALUE) \
    asm volatile("red." #ORDER "." #SCOPE ".global.add.f32 [%0], %1;" ::"l"(__cvta_generic_to_global(AT)), "f"(VALUE) : "memory")
#define TX_RED_VECTORS(ORDER, SCOPE) \
    TX_FN void tx_red_add_##ORDER##_##SCOPE(float *at, float a, float b) { \
        TX_RED_ONE(ORDER, SCOPE, at, a); \
        TX_RED_ONE(ORDER, SCOPE, at + 1, b); \
    } \
    TX_FN void tx_red_add_##ORDER##_##SCOPE(float *at, float a, float b, float c, float d) { \
        tx_red_add_##ORDER##_##SCOPE(at, a, b); \
        tx_red_add_##ORDER##_##SCOPE(at + 2, c, d); \
    }
#endif
TX_RED_VECTORS(relaxed, gpu)
TX_RED_VECTORS(release, gpu)

/* Threads that arrive at barrier `id` (1..15; 0 is __syncthreads'): a multiple of 32. PTX ISA, "bar.sync". */
TX_FN void tx_bar_sync(int id, int threads) { asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory"); }

/* The same with a number that the machine code names, so that no more barriers are set aside for a block than it has. */
template <int ID> TX_FN void tx_bar_sync(int threads) { asm volatile("bar.sync %0, %1;" ::"n"(ID), "r"(threads) : "memory"); }

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
/* Wait until the launch before has ended and what it did to memory is visible. PTX ISA, "griddepcontrol". */
TX_FN void tx_await_launches() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

/* The next launch may start when all blocks have come here or ended. */
TX_FN void tx_admit_launch() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }

/* All threads of the cluster arrive, and see each other's writes. PTX ISA, "barrier.cluster". */
TX_FN void tx_cluster_sync() {
    asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

/* All threads of the cluster come, but do not see each other's writes: behind it engines may write what engines have read. */
TX_FN void tx_cluster_meet() {
    asm volatile("barrier.cluster.arrive.relaxed.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory");
}

/* An array in the shared memory of a block of the cluster, to be read. PTX ISA, "mapa", "ld", "State Spaces": shared::cluster. */
template <class T> struct tx_peer {
    uint32_t at;
    template <class I> __device__ __forceinline__ T operator[](I index) const {
        static_assert(sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8, "what one register or two hold");
        uint32_t const from = at + (uint32_t)index * (uint32_t)sizeof(T);
        T value;
        if constexpr (sizeof(T) == 8) {
            uint64_t word;
            asm volatile("ld.shared::cluster.b64 %0, [%1];" : "=l"(word) : "r"(from) : "memory");
            memcpy(&value, &word, sizeof(T));
        } else if constexpr (sizeof(T) == 4) {
            uint32_t word;
            asm volatile("ld.shared::cluster.b32 %0, [%1];" : "=r"(word) : "r"(from) : "memory");
            memcpy(&value, &word, sizeof(T));
        } else {
            uint16_t word;
            if constexpr (sizeof(T) == 2) asm volatile("ld.shared::cluster.b16 %0, [%1];" : "=h"(word) : "r"(from) : "memory");
            else asm volatile("ld.shared::cluster.u8 %0, [%1];" : "=h"(word) : "r"(from) : "memory");
            memcpy(&value, &word, sizeof(T)); /* the low bytes */
        }
        return value;
    }
};

/* The array `mine` of the block with number `rank` in this cluster. */
template <class T> TX_FN tx_peer<T> tx_cluster_shared(T const *mine, int rank) {
    uint32_t there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"((uint32_t)__cvta_generic_to_shared(mine)), "r"(rank));
    return {there};
}
#endif

/* All blocks of the grid arrive, which the device holds at once, and see each other's writes; `arrived` counts their arrivals since
   the launch, before which it was 0. PTX ISA, "Memory Consistency Model": what a block wrote comes before the arrival that its
   first thread releases, and that before what the other blocks' first threads acquire. */
TX_FN void tx_grid_sync(uint64_t *arrived) {
    __syncthreads();
    if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0) {
        unsigned long long const blocks = (unsigned long long)gridDim.x * gridDim.y * gridDim.z;
        __threadfence();
        unsigned long long seen = atomicAdd(reinterpret_cast<unsigned long long *>(arrived), 1ull);
        unsigned long long const all = seen - seen % blocks + blocks;
        do {
            asm volatile("ld.acquire.gpu.u64 %0, [%1];" : "=l"(seen) : "l"(arrived) : "memory");
        } while (seen < all);
        __threadfence();
    }
    __syncthreads();
}

/* ---- atomics that CUDA lacks -------------------------------------------------------------------------------------------- */

/* `*p = change(*p)` at once, for a type of 4 or 8 bytes. Gives what was there. */
template <class Word, class T, class Change> TX_FN T tx_atomic_word(T *p, Change change) {
    static_assert(sizeof(Word) == sizeof(T), "one word");
    Word *word = reinterpret_cast<Word *>(p), seen = *reinterpret_cast<volatile Word *>(p), expected;
    do {
        expected = seen;
        T before, after;
        memcpy(&before, &expected, sizeof before);
        after = change(before);
        Word wanted;
        memcpy(&wanted, &after, sizeof wanted);
        seen = atomicCAS(word, expected, wanted);
    } while (seen != expected);
    T before;
    memcpy(&before, &seen, sizeof before);
    return before;
}

/* The same for a type of 1 or 2 bytes: through the aligned 4 bytes around it, which memory from any allocator has. */
template <class T, class Change> TX_FN T tx_atomic_part(T *p, Change change) {
    static_assert(sizeof(T) < 4, "part of a word");
    uintptr_t address = reinterpret_cast<uintptr_t>(p);
    uint32_t *word = reinterpret_cast<uint32_t *>(address & ~(uintptr_t)3), shift = 8u * (uint32_t)(address & 3u);
    uint32_t mask = ((1u << (8 * sizeof(T))) - 1u) << shift;
    uint32_t seen = *reinterpret_cast<volatile uint32_t *>(word), expected;
    T before;
    do {
        expected = seen;
        uint32_t part = (expected & mask) >> shift, changed = 0;
        memcpy(&before, &part, sizeof before);
        T after = change(before);
        memcpy(&changed, &after, sizeof after);
        seen = atomicCAS(word, expected, (expected & ~mask) | (changed << shift));
    } while (seen != expected);
    return before;
}

#define TX_ATOMIC(NAME, T, HOW, RESULT) \
    TX_FN T NAME(T *p, T b) { return HOW(p, [=](T a) { return RESULT; }); }
#define TX_ATOMIC_REAL(T, HOW) \
    TX_ATOMIC(atomicMin, T, HOW, tx_min(a, b)) \
    TX_ATOMIC(atomicMax, T, HOW, tx_max(a, b))
#define TX_ATOMIC_SMALL(T) \
    TX_ATOMIC(atomicAdd, T, tx_atomic_part, a + b) \
    TX_ATOMIC_REAL(T, tx_atomic_part)
#define TX_ATOMIC_INTEGER(T) \
    TX_ATOMIC(atomicAdd, T, tx_atomic_part, tx_add(a, b)) \
    TX_ATOMIC_REAL(T, tx_atomic_part) \
    TX_ATOMIC(atomicAnd, T, tx_atomic_part, (T)(a & b)) \
    TX_ATOMIC(atomicOr, T, tx_atomic_part, (T)(a | b))

TX_ATOMIC_REAL(float, tx_atomic_word<uint32_t>)
TX_ATOMIC_REAL(double, tx_atomic_word<unsigned long long>)
TX_ATOMIC(atomicAdd, tx_tf32, tx_atomic_word<uint32_t>, a + b)
TX_ATOMIC_REAL(tx_tf32, tx_atomic_word<uint32_t>)
TX_ATOMIC_SMALL(tx_f16)
TX_ATOMIC_SMALL(tx_bf16)
TX_ATOMIC_SMALL(tx_f8e4m3)
TX_ATOMIC_SMALL(tx_f8e5m2)
TX_ATOMIC_INTEGER(int8_t)
TX_ATOMIC_INTEGER(int16_t)
TX_ATOMIC_INTEGER(uint8_t)
TX_ATOMIC_INTEGER(uint16_t)
TX_ATOMIC(atomicAnd, bool, tx_atomic_part, a & b)
TX_ATOMIC(atomicOr, bool, tx_atomic_part, a | b)
TX_ATOMIC(atomicMin, bool, tx_atomic_part, a & b)
TX_ATOMIC(atomicMax, bool, tx_atomic_part, a | b)

/* CUDA's 64-bit atomics are for long long; int64_t may be long. */
#define TX_ATOMIC_LONG(NAME, T, AS) \
    TX_FN T NAME(T *p, T b) { return (T)NAME(reinterpret_cast<AS *>(p), (AS)b); }
#define TX_ATOMIC_LONGS(T, AS) \
    TX_ATOMIC_LONG(atomicMin, T, AS) TX_ATOMIC_LONG(atomicMax, T, AS) \
    TX_ATOMIC_LONG(atomicAnd, T, AS) TX_ATOMIC_LONG(atomicOr, T, AS)
TX_ATOMIC_LONG(atomicAdd, long long, unsigned long long)
TX_ATOMIC_LONG(atomicAdd, long, unsigned long long)
TX_ATOMIC_LONG(atomicAdd, unsigned long, unsigned long long)
TX_ATOMIC_LONGS(long, long long)
TX_ATOMIC_LONGS(unsigned long, unsigned long long)

#endif

/* ---- lanes: the same text on a device and in the emulator ---------------------------------------------------------------- */

/* This thread's number within its block. */
TX_FN unsigned tx_thread() { return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z); }

/* This thread's lane within its warp. */
TX_FN unsigned tx_lane() { return tx_thread() & (TX_WARP - 1u); }

/* The warp of this thread, which all lanes of it ask for together. A compiler takes a shuffle's result to be the same in all. */
TX_FN int tx_warp(int thread) {
#ifdef __CUDA_ARCH__
    return __shfl_sync(0xffffffffu, thread / (int)TX_WARP, 0);
#else
    return thread / (int)TX_WARP;
#endif
}

/* The barrier of this thread's part of the block, one of `parts` (2, 4 or 8) of so many threads: 1 to 14, each part its own. */
TX_FN int tx_part(int parts, unsigned threads) { return parts - 1 + (int)(tx_thread() / threads); }

/* The mask of the `lanes` (a power of two) consecutive lanes among which this thread is. */
TX_FN unsigned tx_group(unsigned lanes) {
    return lanes == TX_WARP ? 0xffffffffu >> (32u - TX_WARP) : ((1u << lanes) - 1u) << (tx_lane() & ~(lanes - 1u));
}

/* The mask of this thread's warp in a block of so many threads, whose last warp may have fewer lanes than others. */
TX_FN unsigned tx_lanes(unsigned threads) {
    unsigned const left = threads - (tx_thread() & ~(TX_WARP - 1u));
    return 0xffffffffu >> (32u - (left < TX_WARP ? left : TX_WARP));
}

#define TX_SHUFFLE_BITS(T) \
    TX_FN T __shfl_sync(unsigned mask, T x, int lane) { \
        T y; \
        y.bits = (decltype(y.bits))__shfl_sync(mask, (unsigned)x.bits, lane); \
        return y; \
    } \
    TX_FN T __shfl_xor_sync(unsigned mask, T x, int lanes, int width) { \
        T y; \
        y.bits = (decltype(y.bits))__shfl_xor_sync(mask, (unsigned)x.bits, lanes, width); \
        return y; \
    }
TX_EACH_SMALL(TX_SHUFFLE_BITS)

/* Elements side by side in one register of a machine, the first one lowest, and one of them. */
template <class Word, class T, class... More> TX_FN Word tx_packed(T first, More... more) {
    static_assert(sizeof(Word) == sizeof(T) * (1 + sizeof...(More)), "elements fill a register");
    T const all[] = {first, more...};
    Word word;
    memcpy(&word, all, sizeof word);
    return word;
}
template <class T, int AT, class Word> TX_FN T tx_unpacked(Word word) {
    T all[sizeof(Word) / sizeof(T)];
    memcpy(all, &word, sizeof word);
    return all[AT];
}

#include "texpr_warpgroup.h"
#include "texpr_columns.h"

#endif
