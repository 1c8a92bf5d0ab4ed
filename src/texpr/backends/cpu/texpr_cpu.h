/* What emitted C++ for a CPU is written against. C++17, g++ or clang; OpenMP where the compiler is told to use it. */
#ifndef TEXPR_CPU_H
#define TEXPR_CPU_H

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include "texpr_checks.h"
#include "texpr_vector.h"

#define TX_RESTRICT __restrict__
#define TX_PUBLIC extern "C" __attribute__((visibility("default")))

#define TX_TEXT(...) #__VA_ARGS__
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed" /* a loop over lanes that stays scalar is slower, not wrong */
#define TX_UNROLL(COUNT) _Pragma("unroll")
#define TX_ROLLED _Pragma("nounroll")
#else
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized" /* lanes that hold nothing yet may be kept beside those that are set */
#define TX_UNROLL(COUNT) _Pragma(TX_TEXT(GCC unroll COUNT))
#define TX_ROLLED _Pragma("GCC unroll 1")
#endif

typedef int32_t texpr_status;

/* Bytes rounded up so that the next buffer of a workspace begins at a multiple of 256. */
static inline texpr_wide texpr_aligned(texpr_wide bytes) { return (bytes + 255) / 256 * 256; }

/* Whether this processor has what the code was built for, and its system keeps the registers of that. */
TX_FN bool tx_is_supported(void) {
#if (defined(__x86_64__) || defined(__i386__)) && !defined(TX_NO_CPU_MODEL)
#if defined(__AVX512F__)
    if (!__builtin_cpu_supports("avx512f")) return false;
#endif
#if defined(__AVX512VL__) && defined(__AVX512BW__) && defined(__AVX512DQ__)
    if (!__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512dq"))
        return false;
#endif
#if defined(__AVX512BF16__) && defined(__AVX512VNNI__)
    if (!__builtin_cpu_supports("avx512bf16") || !__builtin_cpu_supports("avx512vnni")) return false;
#endif
#if defined(__AVX2__) && defined(__FMA__)
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("bmi2")) return false;
#endif
#endif
    return true;
}

/* ---- memory -------------------------------------------------------------------------------------------------------------- */

/* Asks for what lies 1 KiB after COUNT elements that are read now. Nothing is read, so it may lie outside of any array. */
template <int COUNT, class T> TX_FN void tx_fetch_ahead(T const *now) {
    for (uintptr_t at = 0; at < COUNT * sizeof(T); at += 64) __builtin_prefetch((void const *)((uintptr_t)now + 1024 + at));
}

/* ---- vectors ------------------------------------------------------------------------------------------------------------- */

/* Bytes of a vector: what one instruction of the machine works on. */
#if defined(__AVX512F__)
#define TX_VECTOR_BYTES 64
#elif defined(__AVX__)
#define TX_VECTOR_BYTES 32
#else
#define TX_VECTOR_BYTES 16
#endif
#define TX_LANES(T) (int)(TX_VECTOR_BYTES / sizeof(T))

template <class T> struct tx_vector {
    typedef T type __attribute__((vector_size(TX_VECTOR_BYTES), aligned(alignof(T)), may_alias));
};

/* The vector of elements from `first` on. */
template <class T> TX_FN typename tx_vector<T>::type &tx_row(T &first) {
    return reinterpret_cast<typename tx_vector<T>::type &>(first);
}
template <class T> TX_FN typename tx_vector<T>::type const &tx_row(T const &first) {
    return reinterpret_cast<typename tx_vector<T>::type const &>(first);
}

/* A vector of equal elements. Taking nothing away keeps the sign of a zero. */
typedef float tx_floats __attribute__((vector_size(TX_VECTOR_BYTES)));
typedef double tx_doubles __attribute__((vector_size(TX_VECTOR_BYTES)));
template <class T> TX_FN typename tx_vector<T>::type tx_same(T value) { return value - typename tx_vector<T>::type{}; }

/* Four bytes from `first` on, as they lie. */
template <class T> TX_FN int32_t tx_bytes4(T const *first) {
    int32_t word;
    std::memcpy(&word, first, sizeof word);
    return word;
}

/* The vector of elements of 16 bits from `first` on, widened. */
TX_FN tx_floats tx_wide(tx_bf16 const &first) {
    typedef uint16_t tx_halves __attribute__((vector_size(TX_VECTOR_BYTES / 2)));
    typedef uint32_t tx_words __attribute__((vector_size(TX_VECTOR_BYTES)));
    tx_halves row;
    std::memcpy(&row, &first, sizeof row);
    return (tx_floats)(__builtin_convertvector(row, tx_words) << 16);
}
TX_FN tx_floats tx_wide(tx_f16 const &first) {
#if defined(__AVX512F__)
    return _mm512_maskz_cvtph_ps(0xffff, _mm256_loadu_si256(reinterpret_cast<__m256i const *>(&first)));
#elif defined(__AVX__) && defined(__F16C__)
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<__m128i const *>(&first)));
#else
    tx_floats row = {};
    for (int lane = 0; lane < TX_LANES(float); ++lane) row[lane] = tx_widen((&first)[lane]);
    return row;
#endif
}

/* Of a row that goes beyond what is meant: `tx_some` has the first COUNT elements from `first` on, then zeros, and reads nothing
   after them; `tx_store_some` writes so many and nothing after them; `tx_choose` takes so many lanes of YES, then those of NO.
   COUNT is 1 or more. */
#if defined(__AVX512F__)
#define TX_FIRST(LANES) ((1u << tx_min(count, LANES)) - 1)
TX_FN tx_floats tx_some(float const &first, int count) {
    return _mm512_maskz_loadu_ps((__mmask16)TX_FIRST(16), &first);
}
TX_FN tx_doubles tx_some(double const &first, int count) {
    return _mm512_maskz_loadu_pd((__mmask8)TX_FIRST(8), &first);
}
TX_FN void tx_store_some(float &first, tx_floats row, int count) {
    _mm512_mask_storeu_ps(&first, (__mmask16)TX_FIRST(16), row);
}
TX_FN void tx_store_some(double &first, tx_doubles row, int count) {
    _mm512_mask_storeu_pd(&first, (__mmask8)TX_FIRST(8), row);
}
TX_FN tx_floats tx_choose(int count, tx_floats yes, tx_floats no) {
    return _mm512_mask_blend_ps((__mmask16)TX_FIRST(16), no, yes);
}
TX_FN tx_doubles tx_choose(int count, tx_doubles yes, tx_doubles no) {
    return _mm512_mask_blend_pd((__mmask8)TX_FIRST(8), no, yes);
}
#elif defined(__AVX__)
static int32_t const tx_below[32] = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
TX_FN __m256i tx_first(int lanes) { return _mm256_loadu_si256(reinterpret_cast<__m256i const *>(tx_below + 16 - lanes)); }
TX_FN tx_floats tx_some(float const &first, int count) {
    return _mm256_maskload_ps(&first, tx_first(tx_min(count, 8)));
}
TX_FN tx_doubles tx_some(double const &first, int count) {
    return _mm256_maskload_pd(&first, tx_first(2 * tx_min(count, 4)));
}
TX_FN void tx_store_some(float &first, tx_floats row, int count) {
    _mm256_maskstore_ps(&first, tx_first(tx_min(count, 8)), row);
}
TX_FN void tx_store_some(double &first, tx_doubles row, int count) {
    _mm256_maskstore_pd(&first, tx_first(2 * tx_min(count, 4)), row);
}
TX_FN tx_floats tx_choose(int count, tx_floats yes, tx_floats no) {
    return _mm256_blendv_ps(no, yes, (__m256)tx_first(tx_min(count, 8)));
}
TX_FN tx_doubles tx_choose(int count, tx_doubles yes, tx_doubles no) {
    return _mm256_blendv_pd(no, yes, (__m256d)tx_first(2 * tx_min(count, 4)));
}
#else
template <class T> TX_FN typename tx_vector<T>::type tx_some(T const &first, int count) {
    typename tx_vector<T>::type row = {};
    for (int lane = 0; lane < TX_LANES(T); ++lane)
        if (lane < count) row[lane] = (&first)[lane];
    return row;
}
template <class T> TX_FN void tx_store_some(T &first, typename tx_vector<T>::type row, int count) {
    for (int lane = 0; lane < TX_LANES(T); ++lane)
        if (lane < count) (&first)[lane] = row[lane];
}
template <class V> TX_FN V tx_chosen(int count, V yes, V no) {
    for (int lane = 0; lane < (int)(sizeof(V) / sizeof(yes[0])); ++lane)
        if (lane < count) no[lane] = yes[lane];
    return no;
}
TX_FN tx_floats tx_choose(int count, tx_floats yes, tx_floats no) { return tx_chosen(count, yes, no); }
TX_FN tx_doubles tx_choose(int count, tx_doubles yes, tx_doubles no) { return tx_chosen(count, yes, no); }
#endif

template <class T> TX_FN tx_floats tx_wide_some(T const &first, int count) {
    T row[TX_LANES(float)] = {};
    std::memcpy(row, &first, tx_min(count, TX_LANES(float)) * sizeof(T));
    return tx_wide(row[0]);
}

/* a * b + c in each lane, rounded once where the machine has an instruction for it. */
#if defined(__AVX512F__)
TX_FN tx_floats tx_muladd_rows(tx_floats a, tx_floats b, tx_floats c) { return _mm512_fmadd_ps(a, b, c); }
TX_FN tx_doubles tx_muladd_rows(tx_doubles a, tx_doubles b, tx_doubles c) { return _mm512_fmadd_pd(a, b, c); }
#elif defined(__AVX__) && defined(__FMA__)
TX_FN tx_floats tx_muladd_rows(tx_floats a, tx_floats b, tx_floats c) { return _mm256_fmadd_ps(a, b, c); }
TX_FN tx_doubles tx_muladd_rows(tx_doubles a, tx_doubles b, tx_doubles c) { return _mm256_fmadd_pd(a, b, c); }
#elif defined(__aarch64__)
TX_FN tx_floats tx_muladd_rows(tx_floats a, tx_floats b, tx_floats c) { return vfmaq_f32(c, a, b); }
TX_FN tx_doubles tx_muladd_rows(tx_doubles a, tx_doubles b, tx_doubles c) { return vfmaq_f64(c, a, b); }
#else
TX_FN tx_floats tx_muladd_rows(tx_floats a, tx_floats b, tx_floats c) { return a * b + c; }
TX_FN tx_doubles tx_muladd_rows(tx_doubles a, tx_doubles b, tx_doubles c) { return a * b + c; }
#endif

/* ---- sums and extremes over SIMD lanes that OpenMP itself does not have --------------------------------------------------- */

#pragma omp declare reduction(tx_max : float, double : omp_out = tx_max(omp_out, omp_in)) initializer(omp_priv = -INFINITY)
#pragma omp declare reduction(tx_min : float, double : omp_out = tx_min(omp_out, omp_in)) initializer(omp_priv = INFINITY)
#pragma omp declare reduction(tx_add : int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t : \
    omp_out = tx_add(omp_out, omp_in)) initializer(omp_priv = 0)
#pragma omp declare reduction(tx_mul : int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t : \
    omp_out = tx_mul(omp_out, omp_in)) initializer(omp_priv = 1)

/* ---- atomics ------------------------------------------------------------------------------------------------------------- */

template <int SIZE> struct tx_word;
template <> struct tx_word<1> { typedef uint8_t type; };
template <> struct tx_word<2> { typedef uint16_t type; };
template <> struct tx_word<4> { typedef uint32_t type; };
template <> struct tx_word<8> { typedef uint64_t type; };

/* `*p = change(*p)` at once, relaxed. */
template <class T, class Change> TX_FN void tx_atomic(T *p, Change change) {
    typedef typename tx_word<sizeof(T)>::type Word;
    Word *word = reinterpret_cast<Word *>(p), seen = __atomic_load_n(word, __ATOMIC_RELAXED), wanted;
    do {
        T value;
        std::memcpy(&value, &seen, sizeof value);
        value = change(value);
        std::memcpy(&wanted, &value, sizeof wanted);
    } while (!__atomic_compare_exchange_n(word, &seen, wanted, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

/* ---- what a text assumes of data ----------------------------------------------------------------------------------------- */

/* Numbers that are collected to see whether any two are equal. */
class tx_numbers {
    int64_t *first_, *last_;
    bool ok_;

  public:
    explicit tx_numbers(int64_t most)
        : first_(most > 0 ? static_cast<int64_t *>(std::calloc((size_t)most, sizeof(int64_t))) : nullptr), last_(first_),
          ok_(first_ != nullptr || most <= 0) {}
    tx_numbers(tx_numbers const &) = delete;
    tx_numbers &operator=(tx_numbers const &) = delete;
    ~tx_numbers() { std::free(first_); }

    bool ok() const { return ok_; }
    void add(int64_t number) { *last_++ = number; }
    bool distinct() {
        std::sort(first_, last_);
        return std::adjacent_find(first_, last_) == last_;
    }
};

#endif
