/* Arithmetic and functions of the floating-point types. Included by texpr_numeric.h alone.

   Rounded correctly everywhere: + - * / sqrt fma floor ceil trunc round; mod where its last step, a sum, is exact.
   The rest, as the greatest error in ULP over the whole range of arguments:

                 f32, CUDA   f32, host    f64, CUDA   f64, host
      exp            2        0.5001          1          1
      exp2           2        0.5001          1          1
      log            1        0.5001          1          1
      log2           1        0.5001          1          2
      tanh           2        0.5001          2          2
      rsqrt          2        0.5001          1          2
      sin, cos       2          1             2          1
      erf            2          1             2          1
      pow            9          1             2          1
      expm1          1        0.5001          1          1
      log1p          1        0.5001          1          1
      sigmoid        5        0.5001          3          3
      silu           6        0.5001          4          4
      gelu          10        0.5001          6          2 + the square of x

   In CUDA, and in f64, sigmoid, silu and gelu may be less exact where exp(-|x|), or a 16th of the result, is
   subnormal.

   CUDA: CUDA C++ Programming Guide, "Mathematical Functions", without -use_fast_math; newer editions give less for some. Host:
   where it says 0.5001, the functions below, measured on one f32 in 97 of all; else glibc 2.36 on x86-64 (its manual, "Known
   Maximum Errors in Math Functions"), where other C libraries may differ. The small types compute in f32 and round again. */
#ifndef TEXPR_MATH_H
#define TEXPR_MATH_H

#if defined(__CUDACC__)
#define TX_MATH
#else
#define TX_MATH std::
#endif

#if defined(TX_FUSES) /* whoever includes this says */
#elif defined(__CUDA_ARCH__) || defined(__FMA__) || defined(__aarch64__) || defined(__FP_FAST_FMA)
#define TX_FUSES 1
#else
#define TX_FUSES 0
#endif

#define TX_FLOAT(T) \
    TX_FN bool tx_isnan(T a) { return a != a; } \
    TX_FN bool tx_isinf(T a) { return TX_MATH fabs(a) == (T)INFINITY; } \
    TX_FN T tx_abs(T a) { return TX_MATH fabs(a); } \
    TX_FN T tx_fma(T a, T b, T c) { return TX_MATH fma(a, b, c); } \
    /* Rounded once where the machine has an instruction for it, else twice. */ \
    TX_FN T tx_muladd(T a, T b, T c) { return TX_FUSES ? TX_MATH fma(a, b, c) : a * b + c; } \
    TX_FN T tx_sqrt(T a) { return TX_MATH sqrt(a); } \
    TX_FN T tx_floor(T a) { return TX_MATH floor(a); } \
    TX_FN T tx_ceil(T a) { return TX_MATH ceil(a); } \
    TX_FN T tx_trunc(T a) { return TX_MATH trunc(a); } \
    TX_FN T tx_round(T a) { return TX_MATH rint(a); } \
    TX_FN T tx_pow(T a, T b) { return TX_MATH pow(a, b); } \
    TX_FN T tx_sin(T a) { return TX_MATH sin(a); } \
    TX_FN T tx_cos(T a) { return TX_MATH cos(a); } \
    TX_FN T tx_erf(T a) { return TX_MATH erf(a); } \
    TX_FN T tx_mod(T a, T b) { \
        T r = TX_MATH fmod(a, b); \
        T moved = (r < 0) != (b < 0) ? r + b : r; \
        return r == 0 && b == b ? TX_MATH copysign((T)0, b) : moved; \
    }
TX_FLOAT(float)
TX_FLOAT(double)

/* A nan on either side is given back. No short circuit, so that loops vectorise. */
#define TX_EXTREMES(T) \
    TX_FN T tx_max(T a, T b) { return ((a > b) | (a != a)) ? a : b; } \
    TX_FN T tx_min(T a, T b) { return ((a < b) | (a != a)) ? a : b; }
TX_EXTREMES(double)

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
/* One instruction each. PTX ISA, "max", "min": a nan gives a nan, and -0 is less than +0. */
TX_FN float tx_max(float a, float b) { float c; asm("max.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b)); return c; }
TX_FN float tx_min(float a, float b) { float c; asm("min.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b)); return c; }
#else
TX_EXTREMES(float)
#endif

#if defined(__CUDACC__)
/* One instruction each, within 2 units of the last place, and within 1; 0 below 2^-126. PTX ISA, "ex2", "rcp". */
TX_FN float tx_exp2(float a) { float b; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(b) : "f"(a)); return b; }
TX_FN float tx_inverse(float a) { float b; asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(b) : "f"(a)); return b; }
#else
TX_FN float tx_inverse(float a) { return 1.0f / a; }
#endif
TX_FN double tx_exp2(double a) { return TX_MATH exp2(a); }

#define TX_LIBRARY(T) \
    TX_FN T tx_exp(T a) { return TX_MATH exp(a); } \
    TX_FN T tx_log(T a) { return TX_MATH log(a); } \
    TX_FN T tx_log2(T a) { return TX_MATH log2(a); } \
    TX_FN T tx_tanh(T a) { return TX_MATH tanh(a); } \
    TX_FN T tx_expm1(T a) { return TX_MATH expm1(a); } \
    TX_FN T tx_log1p(T a) { return TX_MATH log1p(a); }
TX_LIBRARY(double)
TX_FN double tx_sigmoid(double a) {
    double small = TX_MATH exp(-TX_MATH fabs(a));
    return (a < 0 ? small : 1.0) / (1.0 + small);
}
TX_FN double tx_silu(double a) { return a * tx_sigmoid(a); }

#if defined(__CUDACC__)
TX_LIBRARY(float)
TX_FN float tx_rsqrt(float a) { return rsqrtf(a); }
TX_FN double tx_rsqrt(double a) { return rsqrt(a); }
TX_FN double tx_gelu(double a) { return a * normcdf(a); }
#else
TX_FN float tx_rsqrt(float a) { return (float)(1.0 / std::sqrt((double)a)); }
TX_FN double tx_rsqrt(double a) { return 1.0 / std::sqrt(a); }
TX_FN double tx_gelu(double a) { return a * (0.5 * std::erfc(a * -0x1.6a09e667f3bcdp-1)); }

/* ---- f32 on a host: in f64, without branches or tables, so that loops vectorise and every machine gives the same bits --------- */

TX_FN double tx_double_from_bits(uint64_t x) { double y; std::memcpy(&y, &x, sizeof y); return y; }

/* 2^t for |t| < 1000, to 2^-39: t = k + r, |r| ≤ 1/2, and a polynomial through Chebyshev nodes for 2^r. */
TX_FN double tx_power_of_two(double t) {
    constexpr double SHIFT = 0x1.8p52; /* adding it leaves k in the last bits */
    double shifted = t + SHIFT, r = t - (shifted - SHIFT);
    double p = 0x1.63d12940529ecp-20;
    p = p * r + 0x1.00dc4a4b3ff86p-16;
    p = p * r + 0x1.4308ac9341a4fp-13;
    p = p * r + 0x1.5d8745a73e151p-10;
    p = p * r + 0x1.3b2ab7181144bp-7;
    p = p * r + 0x1.c6b08dd6fd037p-5;
    p = p * r + 0x1.ebfbdff823db0p-3;
    p = p * r + 0x1.62e42fef84cf0p-1;
    p = p * r + 1.0;
    return tx_double_from_bits(tx_bits(p) + (tx_bits(shifted) << 52));
}

/* The natural logarithm of a positive normal x, to 2^-39, and the exponent apart: x = m 2^e, 1/√2 ≤ m < √2,
   log m = 2 artanh((m - 1) / (m + 1)). */
struct tx_logarithm { double mantissa, exponent; };
TX_FN tx_logarithm tx_log_parts(double x) {
    constexpr uint64_t HALF_ROOT = 0x3fe6a09e667f3bcdull; /* the bits of 1/√2 */
    uint64_t bits = tx_bits(x), raised = (bits - HALF_ROOT + (1024ull << 52)) >> 52; /* e + 1024 */
    double m = tx_double_from_bits(bits - ((raised - 1024ull) << 52));
    double s = (m - 1.0) / (m + 1.0), z = s * s;
    double p = 2.0 / 13;
    p = p * z + 2.0 / 11;
    p = p * z + 2.0 / 9;
    p = p * z + 2.0 / 7;
    p = p * z + 2.0 / 5;
    p = p * z + 2.0 / 3;
    p = p * z + 2.0;
    return {p * s, tx_double_from_bits(raised | 0x4330000000000000ull) - (0x1p52 + 1024.0)};
}

TX_FN float tx_log_special(float a, float found) {
    float low = a == 0.0f ? -INFINITY : NAN; /* also of a nan */
    return a > 0.0f ? (a == INFINITY ? INFINITY : found) : low;
}

TX_FN float tx_exp2(float a) {
    float held = a < -152.0f ? -152.0f : a > 129.0f ? 129.0f : a; /* beyond, the result is 0 or infinite all the same */
    float found = (float)tx_power_of_two((double)held);
    return a != a ? a : found;
}

TX_FN float tx_exp(float a) {
    float held = a < -105.0f ? -105.0f : a > 90.0f ? 90.0f : a;
    float found = (float)tx_power_of_two((double)held * 0x1.71547652b82fep+0);
    return a != a ? a : found;
}

TX_FN float tx_log(float a) {
    tx_logarithm parts = tx_log_parts((double)a);
    return tx_log_special(a, (float)(parts.mantissa + parts.exponent * 0x1.62e42fefa39efp-1));
}

TX_FN float tx_log2(float a) {
    tx_logarithm parts = tx_log_parts((double)a);
    return tx_log_special(a, (float)(parts.mantissa * 0x1.71547652b82fep+0 + parts.exponent));
}

TX_FN float tx_tanh(float a) {
    float held = a < -20.0f ? -20.0f : a > 20.0f ? 20.0f : a;
    double x = (double)held, z = x * x, power = tx_power_of_two(x * 0x1.71547652b82fep+1);
    double series = x * (1.0 - z * (1.0 / 3 - z * (2.0 / 15 - z * (17.0 / 315))));
    float found = (float)(z < 0x1p-8 ? series : (power - 1.0) / (power + 1.0));
    return a != a ? a : found;
}

/* exp(-|a|) is 0 in f32 beyond 120, and so is 120 times it. */
TX_FN double tx_sigmoid_double(float a) {
    float size = a < 0.0f ? -a : a, held = size > 120.0f ? 120.0f : size;
    double power = tx_power_of_two((double)held * -0x1.71547652b82fep+0), small = size > 120.0f ? 0.0 : power;
    return (a < 0.0f ? small : 1.0) / (1.0 + small);
}

TX_FN float tx_sigmoid(float a) {
    float found = (float)tx_sigmoid_double(a);
    return a != a ? a : found;
}

TX_FN float tx_silu(float a) {
    float found = (float)((double)a * tx_sigmoid_double(a));
    return a != a ? a : found;
}

TX_FN float tx_expm1(float a) { return (float)std::expm1((double)a); }
TX_FN float tx_log1p(float a) { return (float)std::log1p((double)a); }
TX_FN float tx_gelu(float a) { return (float)tx_gelu((double)a); }
#endif

/* ---- f32 in CUDA, by single steps: on a host for tests alone -------------------------------------------------------------- */

TX_FN float tx_sigmoid_by_steps(float a) {
    float small = tx_exp(-tx_abs(a));
    return (a < 0.0f ? small : 1.0f) * tx_inverse(1.0f + small);
}

/* a Φ(a), where Φ(-x) = 2^(-BY x²) t P(t), t = 1 / (1 + 0.335 x), P of degree 8 within 2^-24 up to x = 14.6; Φ(-15.5) is 0.
   BY is the f32 next to 1 / (2 log 2): P has the rest. The square is a sum of two, as its error would be that of an exponent. */
TX_FN float tx_gelu_by_steps(float a) {
    constexpr float BY = 0x1.715476p-1f, LOG_2 = 0x1.62e43p-1f;
    float x = tx_abs(a) < 15.5f ? tx_abs(a) : 15.5f, t = tx_inverse(tx_fma(0x1.570a3ep-2f, x, 1.0f));
    float p = -0x1.80d4e0p-6f;
    p = tx_fma(p, t, 0x1.0d9078p-3f);
    p = tx_fma(p, t, -0x1.1571fap-2f);
    p = tx_fma(p, t, 0x1.b5e730p-3f);
    p = tx_fma(p, t, -0x1.9e2578p-5f);
    p = tx_fma(p, t, 0x1.e5a000p-4f);
    p = tx_fma(p, t, 0x1.cf77b8p-4f);
    p = tx_fma(p, t, 0x1.12dcb8p-3f);
    p = tx_fma(p, t, 0x1.11a7b4p-3f);
    float square = x * x, power = square * -BY;
    float lost = tx_fma(tx_fma(x, x, -square), -BY, tx_fma(square, -BY, -power)), small = tx_exp2(power) * (t * p);
    small = tx_fma(small, lost * LOG_2, small);
    return a * (a < 0.0f ? small : 1.0f - small);
}

#if defined(__CUDACC__)
TX_FN float tx_sigmoid(float a) { return tx_sigmoid_by_steps(a); }
TX_FN float tx_silu(float a) { return a * tx_sigmoid(a); }
TX_FN float tx_gelu(float a) { return tx_gelu_by_steps(a); }
#endif

/* ---- the small types: in f32, rounded once ------------------------------------------------------------------------------ */

#define TX_UNARY(T, NAME) TX_FN T NAME(T a) { return tx_narrow(NAME(tx_widen(a)), T{}); }
#define TX_BINARY(T, NAME) TX_FN T NAME(T a, T b) { return tx_narrow(NAME(tx_widen(a), tx_widen(b)), T{}); }
#define TX_OPERATOR(T, OP) \
    TX_FN T operator OP(T a, T b) { return tx_narrow(tx_widen(a) OP tx_widen(b), T{}); } \
    TX_FN T &operator OP##=(T &a, T b) { return a = a OP b; }
#define TX_COMPARE(T, OP) TX_FN bool operator OP(T a, T b) { return tx_widen(a) OP tx_widen(b); }
#define TX_SMALL(T) \
    TX_OPERATOR(T, +) TX_OPERATOR(T, -) TX_OPERATOR(T, *) TX_OPERATOR(T, /) \
    TX_COMPARE(T, <) TX_COMPARE(T, <=) TX_COMPARE(T, >) TX_COMPARE(T, >=) TX_COMPARE(T, ==) TX_COMPARE(T, !=) \
    TX_BINARY(T, tx_mod) TX_BINARY(T, tx_max) TX_BINARY(T, tx_min) TX_BINARY(T, tx_pow) \
    TX_UNARY(T, tx_abs) TX_UNARY(T, tx_sqrt) TX_UNARY(T, tx_rsqrt) TX_UNARY(T, tx_exp) TX_UNARY(T, tx_exp2) \
    TX_UNARY(T, tx_log) TX_UNARY(T, tx_log2) TX_UNARY(T, tx_sin) TX_UNARY(T, tx_cos) TX_UNARY(T, tx_tanh) TX_UNARY(T, tx_erf) \
    TX_UNARY(T, tx_expm1) TX_UNARY(T, tx_log1p) TX_UNARY(T, tx_sigmoid) TX_UNARY(T, tx_silu) TX_UNARY(T, tx_gelu) \
    TX_UNARY(T, tx_floor) TX_UNARY(T, tx_ceil) TX_UNARY(T, tx_trunc) TX_UNARY(T, tx_round) \
    TX_FN T operator-(T a) { return tx_narrow(-tx_widen(a), T{}); } \
    TX_FN T tx_fma(T a, T b, T c) { return tx_narrow(tx_fma(tx_widen(a), tx_widen(b), tx_widen(c)), T{}); } \
    TX_FN bool tx_isnan(T a) { return tx_isnan(tx_widen(a)); } \
    TX_FN bool tx_isinf(T a) { return tx_isinf(tx_widen(a)); }
TX_EACH_SMALL(TX_SMALL)

#endif
