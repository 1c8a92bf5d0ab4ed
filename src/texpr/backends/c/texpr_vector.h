/* Several consecutive elements moved by one access, and copies that go on while the thread does. Portable C++17.

   `N` elements of `T` are 2, 4, 8 or 16 bytes, and their address is a multiple of that. The emulator's checked arrays have
   functions of the same names in texpr_emulator.h. */
#ifndef TEXPR_VECTOR_H
#define TEXPR_VECTOR_H

#include "texpr_numeric.h"

#if defined(__CUDACC__)
#define TX_INLINE __device__ __forceinline__
#else
#define TX_INLINE inline __attribute__((always_inline))
#endif

template <class T, int N> struct tx_vec {
    T at[N];
    TX_INLINE T const &operator[](int lane) const { return at[lane]; }
    TX_INLINE T &operator[](int lane) { return at[lane]; }
};

#if defined(__CUDACC__)

/* What one access moves. */
template <int BYTES, bool WIDE = false> struct tx_packet;
template <> struct tx_packet<2> { typedef unsigned short type; };
template <> struct tx_packet<4> { typedef unsigned int type; };
template <> struct tx_packet<8> { typedef uint2 type; };
template <> struct tx_packet<16> { typedef uint4 type; };
template <> struct tx_packet<16, true> { typedef ulonglong2 type; }; /* of elements of 8 bytes */

/* The elements array[index], array[index + 1], … PTX ISA, "ld". */
template <int N, class T, class I> TX_FN tx_vec<T, N> tx_load(T const *array, I index) {
    typedef typename tx_packet<N * sizeof(T), (N > 1 && sizeof(T) == 8)>::type Packet;
    Packet const packet = *reinterpret_cast<Packet const *>(array + index);
    tx_vec<T, N> vector;
    memcpy(vector.at, &packet, sizeof packet);
    return vector;
}

/* The same elements become `values`. PTX ISA, "st". */
template <class T, class I, class... V> TX_FN void tx_store(T *array, I index, V... values) {
    typedef typename tx_packet<sizeof...(V) * sizeof(T), (sizeof...(V) > 1 && sizeof(T) == 8)>::type Packet;
    T const given[] = {static_cast<T>(values)...};
    Packet packet;
    memcpy(&packet, given, sizeof packet);
    *reinterpret_cast<Packet *>(array + index) = packet;
}

/* Starts a copy of N elements (4, 8 or 16 bytes) from global to shared memory; where not `when`, of zeros, and nothing is read.
   PTX ISA, "cp.async": 16 bytes go past the first cache. */
template <int N, class T, class I, class J> TX_FN void tx_copy_async(T *to, I at, T const *from, J start, bool when) {
    constexpr int BYTES = N * (int)sizeof(T);
    static_assert(BYTES == 4 || BYTES == 8 || BYTES == 16, "4, 8 or 16 bytes");
    unsigned const target = (unsigned)__cvta_generic_to_shared(to + at);
    T const *const source = from + start;
    int const bytes = when ? BYTES : 0;
    if (BYTES == 16) asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(target), "l"(source), "r"(bytes) : "memory");
    else asm volatile("cp.async.ca.shared.global [%0], [%1], %3, %2;" ::"r"(target), "l"(source), "r"(bytes), "n"(BYTES) : "memory");
}
template <int N, class T, class I, class J> TX_FN void tx_copy_async(T *to, I at, T const *from, J start) {
    constexpr int BYTES = N * (int)sizeof(T);
    static_assert(BYTES == 4 || BYTES == 8 || BYTES == 16, "4, 8 or 16 bytes");
    unsigned const target = (unsigned)__cvta_generic_to_shared(to + at);
    T const *const source = from + start;
    if (BYTES == 16) asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(target), "l"(source) : "memory");
    else asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(target), "l"(source), "n"(BYTES) : "memory");
}

/* The copies since the last commit become a group. PTX ISA, "cp.async.commit_group". */
TX_FN void tx_commit_async() { asm volatile("cp.async.commit_group;" ::: "memory"); }

/* At most PENDING groups of this thread, the latest, are unfinished. PTX ISA, "cp.async.wait_group". */
template <int PENDING> TX_FN void tx_wait_async() { asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory"); }

#else

template <int N, class T, class I> TX_FN tx_vec<T, N> tx_load(T const *array, I index) {
    tx_vec<T, N> vector;
    std::memcpy(vector.at, array + index, sizeof vector.at);
    return vector;
}
template <class T, class I, class... V> TX_FN void tx_store(T *array, I index, V... values) {
    T const given[] = {static_cast<T>(values)...};
    std::memcpy(array + index, given, sizeof given);
}

/* On a host a copy is done when it is started. */
template <int N, class T, class I, class J>
TX_FN void tx_copy_async(T *to, I at, T const *from, J start, bool when = true) {
    static_assert(N * sizeof(T) == 4 || N * sizeof(T) == 8 || N * sizeof(T) == 16, "4, 8 or 16 bytes");
    if (when) std::memcpy(to + at, from + start, N * sizeof(T));
    else std::memset(to + at, 0, N * sizeof(T));
}

#endif

#endif
