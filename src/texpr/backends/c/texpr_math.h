/* Arithmetic and functions of the floating-point types. Included by texpr_numeric.h alone.

   Rounded correctly: + - * / sqrt fma, floor, ceil, trunc, round, mod where the quotient is exact. */
#ifndef TEXPR_MATH_H
#define TEXPR_MATH_H

#if defined(__CUDACC__)
#define TX_MATH
#else
#define TX_MATH std::
#endif

/* S: the suffix of the C functions of type T. */
#define TX_FLOAT(T, S) \
    TX_FN bool tx_isnan(T a) { return a != a; } \
    TX_FN bool tx_isinf(T a) { return TX_MATH fabs(a) == (T)INFINITY; } \
    TX_FN T tx_abs(T a) { return TX_MATH fabs(a); } \
    TX_FN T tx_fma(T a, T b, T c) { return TX_MATH fma(a, b, c); } \
    TX_FN T tx_sqrt(T a) { return TX_MATH sqrt(a); } \
    TX_FN T tx_floor(T a) { return TX_MATH floor(a); } \
    TX_FN T tx_ceil(T a) { return TX_MATH ceil(a); } \
    TX_FN T tx_trunc(T a) { return TX_MATH trunc(a); } \
    TX_FN T tx_round(T a) { return TX_MATH rint(a); } \
    TX_FN T tx_pow(T a, T b) { return TX_MATH pow(a, b); } \
    TX_FN T tx_exp(T a) { return TX_MATH exp(a); } \
    TX_FN T tx_exp2(T a) { return TX_MATH exp2(a); } \
    TX_FN T tx_log(T a) { return TX_MATH log(a); } \
    TX_FN T tx_log2(T a) { return TX_MATH log2(a); } \
    TX_FN T tx_sin(T a) { return TX_MATH sin(a); } \
    TX_FN T tx_cos(T a) { return TX_MATH cos(a); } \
    TX_FN T tx_tanh(T a) { return TX_MATH tanh(a); } \
    TX_FN T tx_erf(T a) { return TX_MATH erf(a); } \
    TX_FN T tx_mod(T a, T b) { \
        T r = TX_MATH fmod(a, b); \
        T moved = (r < 0) != (b < 0) ? r + b : r; \
        return r == 0 && b == b ? TX_MATH copysign((T)0, b) : moved; \
    }
TX_FLOAT(float, f)
TX_FLOAT(double, )

#if defined(__CUDACC__)
TX_FN float tx_rsqrt(float a) { return rsqrtf(a); }
TX_FN double tx_rsqrt(double a) { return rsqrt(a); }
#else
TX_FN float tx_rsqrt(float a) { return 1.0f / std::sqrt(a); }
TX_FN double tx_rsqrt(double a) { return 1.0 / std::sqrt(a); }
#endif

/* A nan on either side is given back. No short circuit, so that loops vectorise. */
TX_FN float tx_max(float a, float b) { return (a > b) | (a != a) ? a : b; }
TX_FN float tx_min(float a, float b) { return (a < b) | (a != a) ? a : b; }
TX_FN double tx_max(double a, double b) { return (a > b) | (a != a) ? a : b; }
TX_FN double tx_min(double a, double b) { return (a < b) | (a != a) ? a : b; }

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
    TX_UNARY(T, tx_floor) TX_UNARY(T, tx_ceil) TX_UNARY(T, tx_trunc) TX_UNARY(T, tx_round) \
    TX_FN T operator-(T a) { return tx_narrow(-tx_widen(a), T{}); } \
    TX_FN T tx_fma(T a, T b, T c) { return tx_narrow(tx_fma(tx_widen(a), tx_widen(b), tx_widen(c)), T{}); } \
    TX_FN bool tx_isnan(T a) { return tx_isnan(tx_widen(a)); } \
    TX_FN bool tx_isinf(T a) { return tx_isinf(tx_widen(a)); }
TX_EACH_SMALL(TX_SMALL)

#endif
