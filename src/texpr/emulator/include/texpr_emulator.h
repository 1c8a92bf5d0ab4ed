/* CUDA's language extensions for a host compiler: included by texpr_device.h in place of CUDA itself. C++17.

   A kernel's text is compiled unchanged. With TX_EMU_CHECKED (the default) each access to memory passes through the
   emulator's core, which detects faults and may switch to another thread first; with TX_EMU_CHECKED=0 memory is plain
   memory, for speed. One thread of the host runs all threads of a grid, as fibers, so nothing here is atomic or volatile. */
#ifndef TEXPR_EMULATOR_H
#define TEXPR_EMULATOR_H

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "texpr_emulator_abi.h"

#ifndef TX_EMU_CHECKED
#define TX_EMU_CHECKED 1
#endif

#if !defined(__GNUC__)
#error "the emulator needs g++ or clang++"
#endif

#define TX_EMU_HIDDEN __attribute__((visibility("hidden")))
#define TX_EMU_VISIBLE __attribute__((visibility("default")))

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __cluster_dims__(...)
#define __align__(N) alignas(N)

namespace tx_emu TX_EMU_HIDDEN {

inline Core *core = nullptr; /* set by the emulator before each launch */

} // namespace tx_emu

#define threadIdx (tx_emu::core->current->thread_index)
#define blockIdx (tx_emu::core->current->block_index)
#define blockDim (tx_emu::core->block_dim)
#define gridDim (tx_emu::core->grid_dim)
constexpr int warpSize = (int)TX_WARP;

/* ---- memory ------------------------------------------------------------------------------------------------------------ */

namespace tx_emu TX_EMU_HIDDEN {

template <class T> struct Ref;

/* The type for template argument deduction: for an element, that of its value. */
template <class T> struct ValueOf { using type = T; };
template <class T> struct ValueOf<Ref<T>> { using type = T; };
template <class T> using value_of = typename ValueOf<T>::type;
template <class T> using exactly = std::common_type_t<T>; /* not deduced */

/* The address of an element, for atomics alone. */
template <class T> struct Pointer {
    View *view;
    long long index;
    template <class U> explicit operator U *() const { return reinterpret_cast<U *>(view->base + index * (long long)sizeof(T)); }
};

/* An element that may be read and written. */
template <class T> struct Ref {
    View *view;
    long long index;

    operator T() const { return *static_cast<const T *>(core->read(view, index)); }
    T operator=(T value) const {
        *static_cast<T *>(core->write(view, index)) = value;
        return value;
    }
    T operator=(const Ref &other) const { return *this = static_cast<T>(other); }
    Pointer<T> operator&() const { return {view, index}; }

#define TX_EMU_UPDATE(OP) \
    template <class U> T operator OP##=(const U &value) const { \
        return *this = static_cast<T>(static_cast<T>(*this) OP static_cast<value_of<U>>(value)); \
    }
    TX_EMU_UPDATE(+) TX_EMU_UPDATE(-) TX_EMU_UPDATE(*) TX_EMU_UPDATE(/) TX_EMU_UPDATE(%)
    TX_EMU_UPDATE(&) TX_EMU_UPDATE(|) TX_EMU_UPDATE(^) TX_EMU_UPDATE(<<) TX_EMU_UPDATE(>>)
#undef TX_EMU_UPDATE
};

template <class T> struct Array;

template <class T> struct Array<const T> {
    View *view;
    T operator[](long long index) const { return *static_cast<const T *>(core->read(view, index)); }
};

template <class T> struct Array {
    View *view;
    Ref<T> operator[](long long index) const { return {view, index}; }
    operator Array<const T>() const { return {view}; }
};

/* An array of one thread. Its memory is poisoned until written. */
template <class T, long long COUNT> struct Local {
    View view;
    unsigned char written[COUNT];
    alignas(alignof(T) > 16 ? alignof(T) : 16) char memory[sizeof(T) * COUNT];

    explicit Local(const char *name, bool defined = false)
        : view{memory, COUNT, sizeof(T), 1, Space::local, false, true, name, written, nullptr} {
        std::memset(written, defined, sizeof written);
        std::memset(memory, 0xff, sizeof memory);
    }
    Local(const Local &) = delete;
    Local &operator=(const Local &) = delete;
    Ref<T> operator[](long long index) { return {&view, index}; }
};

} // namespace tx_emu

#if TX_EMU_CHECKED
#define TX_GLOBAL(T) tx_emu::Array<T>
#define TX_COMMON(T) TX_GLOBAL(T)
#define TX_SHARED_AT(T, NAME, COUNT, ALIGN, OFFSET) \
    static tx_emu::Site NAME##__site = {#NAME, sizeof(T), COUNT, -1, ALIGN, OFFSET}; \
    tx_emu::Array<T> const NAME{tx_emu::core->shared(&NAME##__site)}
#define TX_LOCAL(T, NAME, COUNT) tx_emu::Local<T, COUNT> NAME(#NAME)
/* Defined from the start: in a shuffle, lanes whose value is not used pass an arbitrary one. */
#define TX_LANES(T, NAME, COUNT) tx_emu::Local<T, COUNT> NAME(#NAME, true)
#define TX_AT(LINE) tx_emu::core->current->line = (LINE);
#else
/* No __restrict__: other fibers write during a barrier, which that word would let the compiler overlook. */
#define TX_GLOBAL(T) T *
#define TX_COMMON(T) TX_GLOBAL(T)
#define TX_SHARED_AT(T, NAME, COUNT, ALIGN, OFFSET) \
    static tx_emu::Site NAME##__site = {#NAME, sizeof(T), COUNT, -1, ALIGN, OFFSET}; \
    T *const NAME = reinterpret_cast<T *>(tx_emu::core->shared(&NAME##__site)->base)
#define TX_LOCAL(T, NAME, COUNT) T NAME[COUNT]
#define TX_LANES(T, NAME, COUNT) T NAME[COUNT] = {}
#define TX_AT(LINE)
#endif
#define TX_SHARED_ALIGNED(T, NAME, COUNT, ALIGN) TX_SHARED_AT(T, NAME, COUNT, ALIGN, -1)
#define TX_SHARED(T, NAME, COUNT) TX_SHARED_ALIGNED(T, NAME, COUNT, 16)
#define TX_BARRIERS(NAME, COUNT) TX_SHARED(std::uint64_t, NAME, COUNT)
#define TX_SHARED_BLOCK(BYTES) tx_emu::core->shared_block(BYTES)
#define TX_SHARED_ARENA(BYTES) static_assert((BYTES) > 0, "what arrays share")
#define TX_BARRIERS_AT(NAME, COUNT, OFFSET) TX_SHARED_AT(std::uint64_t, NAME, COUNT, 16, OFFSET)

#include "texpr_emulator_places.h"

#include "texpr_emulator_ops.h"

/* ---- used by hand-written code only ------------------------------------------------------------- */

inline void __threadfence() {}
inline void __threadfence_block() {}

inline unsigned tx_cluster_rank() { return tx_emu::core->cluster_rank(); }

/* The array `mine` of the block with number `rank` in this cluster. */
#if TX_EMU_CHECKED
template <class T> tx_emu::Array<T> tx_cluster_shared(tx_emu::Array<T> mine, unsigned rank) {
    return {tx_emu::core->shared_of(mine.view, rank)};
}
#else
template <class T> T *tx_cluster_shared(T *mine, unsigned rank) {
    return reinterpret_cast<T *>(tx_emu::core->shared_of(tx_emu::core->shared_at(mine), rank)->base);
}
#endif

inline int __any_sync(unsigned mask, bool value, int line = __builtin_LINE()) {
    return (int)tx_emu::core->vote(mask, tx_emu::Vote::any, value, line);
}
inline int __all_sync(unsigned mask, bool value, int line = __builtin_LINE()) {
    return (int)tx_emu::core->vote(mask, tx_emu::Vote::all, value, line);
}
inline unsigned __ballot_sync(unsigned mask, bool value, int line = __builtin_LINE()) {
    return tx_emu::core->vote(mask, tx_emu::Vote::ballot, value, line);
}

/* ---- arithmetic CUDA names ---------------------------------------------------------------------------------------------- */

inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fsqrt_rn(float a) { return std::sqrt(a); }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dsub_rn(double a, double b) { return a - b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline double __dsqrt_rn(double a) { return std::sqrt(a); }
inline double __fma_rn(double a, double b, double c) { return std::fma(a, b, c); }
inline int __popc(unsigned a) { return __builtin_popcount(a); }
inline int __clz(int a) { return a == 0 ? 32 : __builtin_clz((unsigned)a); }
inline int __ffs(int a) { return __builtin_ffs(a); }

/* ---- entry ------------------------------------------------------------------------------------------------------------- */

namespace tx_emu TX_EMU_HIDDEN {

template <class T> constexpr Parameter describe() {
    if constexpr (std::is_pointer_v<T>) {
        using E = std::remove_pointer_t<T>;
        return {std::is_const_v<E> ? 'c' : 'g', sizeof(E)};
    } else {
        char kind = std::is_floating_point_v<T> ? 'f' : !std::is_integral_v<T> ? 'x' : std::is_signed_v<T> ? 'i' : 'u';
        return {kind, sizeof(T)};
    }
}
template <class T> struct Describe { static constexpr Parameter value = describe<T>(); };
template <class T> struct Describe<Array<T>> {
    static constexpr Parameter value = {std::is_const_v<T> ? 'c' : 'g', sizeof(T)};
};

template <class F> struct Signature;
template <class... P> struct Signature<void (*)(P...)> {
    static constexpr unsigned count = sizeof...(P);
    static constexpr Parameter parameters[sizeof...(P) + 1] = {Describe<P>::value..., {0, 0}};
    template <std::size_t... I> static void call(void (*kernel)(P...), void **given, std::index_sequence<I...>) {
        (void)given;
        kernel(*static_cast<P *>(given[I])...);
    }
    static void call(void (*kernel)(P...), void **given) { call(kernel, given, std::index_sequence_for<P...>()); }
};

} // namespace tx_emu

#if TX_EMU_CHECKED
namespace tx_emu TX_EMU_HIDDEN {
__forceinline__ void end_turn() {
    if (core->turn) core->turn();
}
} // namespace tx_emu
/* Lanes that left a turn of a loop out wait at its end for the others. It is part of the loop's step: so nothing need be said of it
   in a kernel's text. */
#define for(...) for (__VA_ARGS__, tx_emu::end_turn())
#endif

constexpr const char *tx_emu_source(long) { return ""; } /* where a text does not say TX_SOURCE */
#define TX_SOURCE(FILE) \
    constexpr const char *tx_emu_source(int) { return FILE; }
#define TX_EXPORT(KERNEL) \
    extern "C" { \
    TX_EMU_VISIBLE void KERNEL##__emu(void **given); \
    void KERNEL##__emu(void **given) { tx_emu::Signature<decltype(&KERNEL)>::call(&KERNEL, given); } \
    TX_EMU_VISIBLE extern const tx_emu::Kernel KERNEL##__emu_kernel; \
    const tx_emu::Kernel KERNEL##__emu_kernel = { \
        tx_emu::ABI, TX_WARP, TX_EMU_CHECKED != 0, tx_emu::Signature<decltype(&KERNEL)>::count, \
        tx_emu::Signature<decltype(&KERNEL)>::parameters, #KERNEL, tx_emu_source(0), &KERNEL##__emu, &tx_emu::core, &tx_emu::overlaps}; \
    }

#endif
