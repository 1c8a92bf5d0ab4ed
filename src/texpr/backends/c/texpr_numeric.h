/* Scalar types and mathematics of emitted code, one meaning on every machine. Portable C++17; no library but the C++ standard's.

   Integers wrap. Division and remainder floor, and by zero give 0. Maximum and minimum propagate nan. Conversion to a
   floating-point type rounds once, to nearest even; floating point to integer truncates and saturates, nan gives 0.
   f16, bf16, f8e4m3, f8e5m2, f8e8m0 and tf32 compute in f32 and round once to the type.

   Every function is overloaded for exact types and is no template in its operands, so that whatever converts to one such
   type (an element of a checked array of the emulator, say) may be passed.

   Errors of the functions that are not rounded correctly: see texpr_math.h. */
#ifndef TEXPR_NUMERIC_H
#define TEXPR_NUMERIC_H

#if defined(__CUDACC_RTC__) /* NVRTC has no headers of the host */
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
typedef unsigned long long uintptr_t;
#else
#include <cmath>
#include <cstdint>
#include <cstring>
#if defined(__F16C__)
#include <immintrin.h>
#endif
#endif

#if defined(__CUDACC__)
#define TX_FN static __device__ __forceinline__
#else
#define TX_FN static inline __attribute__((always_inline))
#endif

/* ---- bits -------------------------------------------------------------------------------------------------------------- */

#if defined(__CUDACC__)
TX_FN uint32_t tx_bits(float x) { return __float_as_uint(x); }
TX_FN uint64_t tx_bits(double x) { return (uint64_t)__double_as_longlong(x); }
TX_FN float tx_from_bits(uint32_t x) { return __uint_as_float(x); }
#else
TX_FN uint32_t tx_bits(float x) { uint32_t y; std::memcpy(&y, &x, sizeof y); return y; }
TX_FN uint64_t tx_bits(double x) { uint64_t y; std::memcpy(&y, &x, sizeof y); return y; }
TX_FN float tx_from_bits(uint32_t x) { float y; std::memcpy(&y, &x, sizeof y); return y; }
#endif

/* ---- the small floating-point types ------------------------------------------------------------------------------------ */

struct tx_f16 { uint16_t bits; };
struct tx_bf16 { uint16_t bits; };
struct tx_f8e4m3 { uint8_t bits; }; /* finite only: 0x7f and 0xff are nan, the largest is 448 */
struct tx_f8e5m2 { uint8_t bits; };
struct tx_f8e8m0 { uint8_t bits; }; /* the exponent of an f32 above zero, 0 for 2^-127; 0xff is nan */
struct tx_tf32 { uint32_t bits; }; /* an f32 whose last 13 bits are 0 */

/* A format with E exponent and M mantissa bits below its sign. All its subnormals are normal in f32, and no operation here
   meets a subnormal f32, so a caller that flushes those to zero changes nothing. */
template <int E, int M, bool INFINITE> struct tx_format {
    static constexpr uint32_t SHIFT = 23 - M;
    static constexpr uint32_t OFFSET = 127u - ((1u << (E - 1)) - 1u); /* difference of the biases */
    static constexpr uint32_t TOP = INFINITE ? ((1u << E) - 1u) << M : (1u << (E + M)) - 1u; /* infinity, or the only nan */
    static constexpr uint32_t NAN_ = INFINITE ? TOP | (1u << (M - 1)) : TOP;

    TX_FN float decode(uint32_t bits) {
        uint32_t sign = (bits >> (E + M)) << 31, magnitude = bits & ((1u << (E + M)) - 1u);
        uint32_t placed = magnitude << SHIFT;
        uint32_t normal = placed + (OFFSET << 23);
        float least = tx_from_bits((OFFSET + 1u) << 23);
        uint32_t subnormal = tx_bits(tx_from_bits(placed + ((OFFSET + 1u) << 23)) - least);
        uint32_t special = INFINITE ? placed | 0x7f800000u : 0x7fc00000u;
        uint32_t finite = magnitude < (1u << M) ? subnormal : normal;
        return tx_from_bits((magnitude >= TOP ? special : finite) | sign);
    }

    TX_FN uint32_t encode(float x) {
        uint32_t bits = tx_bits(x), sign = bits & 0x80000000u, magnitude = bits ^ sign;
        uint32_t even = (magnitude >> SHIFT) & 1u;
        uint32_t normal = (magnitude - (OFFSET << 23) + ((1u << (SHIFT - 1)) - 1u) + even) >> SHIFT;
        float magic = tx_from_bits((OFFSET + SHIFT + 1u) << 23); /* its last bit weighs what the format's last does */
        uint32_t subnormal = tx_bits(tx_from_bits(magnitude) + magic) - tx_bits(magic);
        uint32_t finite = magnitude < ((OFFSET + 1u) << 23) ? subnormal : normal;
        uint32_t clamped = finite < TOP ? finite : TOP;
        return (magnitude > 0x7f800000u ? NAN_ : clamped) | (sign >> (31 - E - M));
    }
};

typedef tx_format<5, 10, true> tx_format_f16;
typedef tx_format<4, 3, false> tx_format_f8e4m3;
typedef tx_format<5, 2, true> tx_format_f8e5m2;

#if defined(__CUDA_ARCH__)
/* One instruction wherever in a register x is, where a shift takes up to three. */
TX_FN float tx_widen(tx_bf16 x) {
    uint32_t y;
    asm("mov.b32 %0, {%1, %2};" : "=r"(y) : "h"((uint16_t)0), "h"(x.bits));
    return tx_from_bits(y);
}
#else
TX_FN float tx_widen(tx_bf16 x) { return tx_from_bits((uint32_t)x.bits << 16); }
#endif
TX_FN float tx_widen(tx_tf32 x) { return tx_from_bits(x.bits); }

/* tx_narrow(x, T{}): x rounded to nearest even. */
TX_FN tx_tf32 tx_narrow(float x, tx_tf32) {
    uint32_t bits = tx_bits(x), rounded = (bits + 0xfffu + ((bits >> 13) & 1u)) & 0xffffe000u;
    return tx_tf32{x != x ? (bits & 0x80000000u) | 0x7fc00000u : rounded};
}

#if defined(__CUDA_ARCH__)
TX_FN float tx_widen(tx_f16 x) { float y; asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits)); return y; }
TX_FN tx_f16 tx_narrow(float x, tx_f16) {
    tx_f16 y;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
    return y;
}
#else
#if defined(__F16C__)
TX_FN float tx_widen(tx_f16 x) { return _cvtsh_ss(x.bits); }
#else
TX_FN float tx_widen(tx_f16 x) { return tx_format_f16::decode(x.bits); }
#endif
TX_FN tx_f16 tx_narrow(float x, tx_f16) { return tx_f16{(uint16_t)tx_format_f16::encode(x)}; }
#endif

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
TX_FN tx_bf16 tx_narrow(float x, tx_bf16) {
    tx_bf16 y;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
    return y;
}
#else
TX_FN tx_bf16 tx_narrow(float x, tx_bf16) {
    uint32_t bits = tx_bits(x), rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    return tx_bf16{(uint16_t)(x != x ? ((bits >> 16) & 0x8000u) | 0x7fc0u : rounded)};
}
#endif

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
/* The instruction saturates; past the last value that rounds to a finite one, nan (f8e4m3) or infinity (f8e5m2) is put. */
TX_FN tx_f8e4m3 tx_narrow(float x, tx_f8e4m3) {
    uint16_t pair;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(x));
    uint32_t beyond = ((tx_bits(x) >> 24) & 0x80u) | 0x7fu;
    return tx_f8e4m3{(uint8_t)(fabsf(x) <= 464.0f ? pair & 0xffu : beyond)};
}
TX_FN tx_f8e5m2 tx_narrow(float x, tx_f8e5m2) {
    uint16_t pair;
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(x));
    uint32_t beyond = ((tx_bits(x) >> 24) & 0x80u) | (x != x ? 0x7eu : 0x7cu);
    return tx_f8e5m2{(uint8_t)(fabsf(x) < 61440.0f ? pair & 0xffu : beyond)};
}
TX_FN float tx_widen(tx_f8e4m3 x) {
    uint32_t pair;
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pair) : "h"((uint16_t)x.bits));
    return tx_widen(tx_f16{(uint16_t)pair});
}
TX_FN float tx_widen(tx_f8e5m2 x) { return tx_widen(tx_f16{(uint16_t)(x.bits << 8)}); }
#else
TX_FN tx_f8e4m3 tx_narrow(float x, tx_f8e4m3) { return tx_f8e4m3{(uint8_t)tx_format_f8e4m3::encode(x)}; }
TX_FN tx_f8e5m2 tx_narrow(float x, tx_f8e5m2) { return tx_f8e5m2{(uint8_t)tx_format_f8e5m2::encode(x)}; }
TX_FN float tx_widen(tx_f8e4m3 x) { return tx_format_f8e4m3::decode(x.bits); }
TX_FN float tx_widen(tx_f8e5m2 x) { return tx_format_f8e5m2::decode(x.bits); }
#endif

/* The nearest power of two, the greater of two; nan for what is not above zero, or more than 2^127. */
TX_FN tx_f8e8m0 tx_narrow(float x, tx_f8e8m0) {
    uint32_t bits = tx_bits(x), half = bits < 0x800000u ? 0x200000u : 0x400000u, rounded = (bits + half) >> 23;
    return tx_f8e8m0{(uint8_t)(bits - 1u < 0x7f800000u && rounded < 255u ? rounded : 255u)};
}
TX_FN float tx_widen(tx_f8e8m0 x) {
    uint32_t bits = (uint32_t)x.bits << 23;
    return tx_from_bits(x.bits == 255 ? 0x7fc00000u : x.bits == 0 ? 0x400000u : bits);
}

/* ---- conversions: tx_to<T>(x) ------------------------------------------------------------------------------------------ */

template <class T> constexpr bool tx_is_small = false;
template <> constexpr bool tx_is_small<tx_f16> = true;
template <> constexpr bool tx_is_small<tx_bf16> = true;
template <> constexpr bool tx_is_small<tx_f8e4m3> = true;
template <> constexpr bool tx_is_small<tx_f8e5m2> = true;
template <> constexpr bool tx_is_small<tx_f8e8m0> = true;
template <> constexpr bool tx_is_small<tx_tf32> = true;
template <class T> constexpr bool tx_is_wide = false;
template <> constexpr bool tx_is_wide<float> = true;
template <> constexpr bool tx_is_wide<double> = true;
template <class T> constexpr bool tx_is_bool = false;
template <> constexpr bool tx_is_bool<bool> = true;
template <class A, class B> constexpr bool tx_is_same = false;
template <class A> constexpr bool tx_is_same<A, A> = true;

/* An f32 that rounds to any type of 16 bits or fewer as x does: where x is no f32, the one of its two neighbours whose last
   bit is 1 (Boldo, Melquiond: "Emulation of a FMA and correctly rounded sums: proved algorithms using rounding to odd"). */
TX_FN float tx_odd(double x) {
    float y = (float)x;
    uint32_t bits = tx_bits(y);
    bool inexact = x == x && (double)y != x && (bits & 1u) == 0;
    bool under = (y < 0 ? -(double)y : (double)y) < (x < 0 ? -x : x);
    return tx_from_bits(inexact ? (under ? bits + 1u : bits - 1u) : bits);
}
TX_FN float tx_odd(float x) { return x; }
template <class T> TX_FN float tx_odd(T x) {
    if constexpr (sizeof(T) < 4) return (float)x;
    else if constexpr (sizeof(T) == 4) return tx_odd((double)x);
    else {
        bool negative = x < 0;
        uint64_t magnitude = negative ? 0 - (uint64_t)x : (uint64_t)x;
        bool fits = magnitude < (1ull << 53);
        uint64_t sticky = (magnitude >> 11) | (uint64_t)((magnitude & 0x7ffu) != 0);
        double y = fits ? (double)magnitude : (double)sticky * 2048.0;
        return tx_odd(negative ? -y : y);
    }
}

/* Truncates and saturates; nan gives 0. */
template <class To, class From> TX_FN To tx_saturate(From x) {
#if defined(__CUDA_ARCH__) /* the instruction does all of it */
    if constexpr (tx_is_same<From, float> && tx_is_same<To, int>) return __float2int_rz(x);
    else if constexpr (tx_is_same<From, float> && tx_is_same<To, unsigned>) return __float2uint_rz(x);
    else
#endif
    {
    constexpr int WIDTH = 8 * (int)sizeof(To);
    constexpr bool SIGNED = (To)-1 < (To)0;
    constexpr uint64_t HIGH = 1ull << (SIGNED ? WIDTH - 2 : WIDTH - 1); /* half of one more than the greatest */
    constexpr From TOP = (From)HIGH * (From)2, LOW = SIGNED ? -TOP : (From)0;
    constexpr To GREATEST = (To)(SIGNED ? HIGH - 1 + HIGH : ~0ull);
    constexpr To LEAST = SIGNED ? (To)(-(int64_t)GREATEST - 1) : (To)0;
    if (!(x > LOW)) return x != x ? (To)0 : LEAST;
    return x >= TOP ? GREATEST : (To)x;
    }
}

template <class To, class From> TX_FN To tx_convert(From x) {
    if constexpr (tx_is_same<To, From>) return x;
    else if constexpr (tx_is_small<From>) return tx_convert<To, float>(tx_widen(x));
    else if constexpr (tx_is_small<To>) return tx_narrow(tx_odd(x), To{});
    else if constexpr (tx_is_bool<To>) return x != (From)0;
    else if constexpr (tx_is_wide<From> && !tx_is_wide<To>) return tx_saturate<To, From>(x);
    else return (To)x;
}

#define TX_EACH_SIGNED(F) F(signed char, unsigned) F(short, unsigned) F(int, unsigned) F(long, unsigned long) F(long long, unsigned long long)
#define TX_EACH_UNSIGNED(F) \
    F(unsigned char, unsigned) F(unsigned short, unsigned) F(unsigned, unsigned) F(unsigned long, unsigned long) \
    F(unsigned long long, unsigned long long)
#define TX_EACH_SMALL(F) F(tx_f16) F(tx_bf16) F(tx_f8e4m3) F(tx_f8e5m2) F(tx_f8e8m0) F(tx_tf32)

#define TX_TO(T) template <class To> TX_FN To tx_to(T x) { return tx_convert<To, T>(x); }
#define TX_TO2(T, U) TX_TO(T)
TX_EACH_SIGNED(TX_TO2)
TX_EACH_UNSIGNED(TX_TO2)
TX_EACH_SMALL(TX_TO)
TX_TO(bool)
TX_TO(float)
TX_TO(double)

/* ---- integers ---------------------------------------------------------------------------------------------------------- */

/* U is at least as wide as int: narrower types would be promoted to a signed type, whose overflow has no meaning. */
#define TX_INTEGER(T, U) \
    TX_FN T tx_add(T a, T b) { return (T)((U)a + (U)b); } \
    TX_FN T tx_sub(T a, T b) { return (T)((U)a - (U)b); } \
    TX_FN T tx_mul(T a, T b) { return (T)((U)a * (U)b); } \
    TX_FN T tx_neg(T a) { return (T)((U)0 - (U)a); } \
    TX_FN T tx_max(T a, T b) { return a < b ? b : a; } \
    TX_FN T tx_min(T a, T b) { return b < a ? b : a; } \
    TX_FN T tx_shl(T a, T n) { return (U)n < 8 * sizeof(T) ? (T)((U)a << (U)n) : (T)0; }
TX_EACH_SIGNED(TX_INTEGER)
TX_EACH_UNSIGNED(TX_INTEGER)

#define TX_SIGNED(T, U) \
    TX_FN T tx_abs(T a) { return a < 0 ? tx_neg(a) : a; } \
    TX_FN T tx_shr(T a, T n) { return (T)(a >> ((U)n < 8 * sizeof(T) ? (U)n : (U)(8 * sizeof(T) - 1))); } \
    TX_FN T tx_floordiv(T a, T b) { \
        if (b == 0) return 0; \
        if (b == -1) return tx_neg(a); \
        T q = (T)(a / b); \
        return (T)(q - ((a % b != 0) & ((a < 0) != (b < 0)))); \
    } \
    TX_FN T tx_mod(T a, T b) { \
        if (b == 0 || b == -1) return 0; \
        T r = (T)(a % b); \
        return r != 0 && (r < 0) != (b < 0) ? (T)(r + b) : r; \
    }
TX_EACH_SIGNED(TX_SIGNED)

/* Indices that 64 bits do not hold. */
__extension__ typedef __int128 tx_int128;
__extension__ typedef unsigned __int128 tx_uint128;
TX_INTEGER(tx_int128, tx_uint128)
TX_SIGNED(tx_int128, tx_uint128)

#define TX_UNSIGNED(T, U) \
    TX_FN T tx_abs(T a) { return a; } \
    TX_FN T tx_shr(T a, T n) { return (U)n < 8 * sizeof(T) ? (T)((U)a >> (U)n) : (T)0; } \
    TX_FN T tx_floordiv(T a, T b) { return b == 0 ? (T)0 : (T)(a / b); } \
    TX_FN T tx_mod(T a, T b) { return b == 0 ? (T)0 : (T)(a % b); }
TX_EACH_UNSIGNED(TX_UNSIGNED)

/* Both sides are evaluated, which && and || would not do. */
TX_FN bool tx_and(bool a, bool b) { return a & b; }
TX_FN bool tx_or(bool a, bool b) { return a | b; }
TX_FN bool tx_max(bool a, bool b) { return a | b; }
TX_FN bool tx_min(bool a, bool b) { return a & b; }

#include "texpr_math.h"

#endif
