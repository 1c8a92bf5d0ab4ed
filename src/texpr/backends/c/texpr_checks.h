/* What the host's side of an emitted function computes with before it starts anything. C11 and C++17.

   Sizes are below 2^31, and what conditions and shapes make of them is exact in 128 bits: where that is not plain, a bound that
   is computed in arithmetic that saturates refuses larger sizes first. */
#ifndef TEXPR_CHECKS_H
#define TEXPR_CHECKS_H

#include <stdint.h>

__extension__ typedef __int128 texpr_wide;

#define TEXPR_MOST_BYTES ((texpr_wide)1 << 62) /* of an array; no machine has more */

/* Division that floors, and by zero gives 0, as everywhere in emitted code. */
static inline texpr_wide texpr_floordiv(texpr_wide a, texpr_wide b) {
    if (b == 0) return 0;
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static inline texpr_wide texpr_mod(texpr_wide a, texpr_wide b) { return b == 0 ? 0 : a - b * texpr_floordiv(a, b); }

static inline texpr_wide texpr_min(texpr_wide a, texpr_wide b) { return b < a ? b : a; }

static inline texpr_wide texpr_max(texpr_wide a, texpr_wide b) { return a < b ? b : a; }

#define TEXPR_MOST_WIDE ((texpr_wide)1 << 126)

/* Sums and products of what is not negative, or 2^126 where they are more. */
static inline texpr_wide texpr_plus(texpr_wide a, texpr_wide b) { return a > TEXPR_MOST_WIDE - b ? TEXPR_MOST_WIDE : a + b; }

static inline texpr_wide texpr_times(texpr_wide a, texpr_wide b) {
    return b != 0 && a > TEXPR_MOST_WIDE / b ? TEXPR_MOST_WIDE : a * b;
}

/* Bytes from an array's first element to the end of its last; 0 where it is empty; -1 where an extent or stride is negative or
   the bytes are too many, each extent of 0 counted as 1: then no part of a place overflows, whichever extent is 0. `stride` counts
   elements; a null pointer stands for a dense array, the last index fastest. */
static inline int64_t texpr_span(int rank, texpr_wide const *shape, texpr_wide const *stride, int item) {
    texpr_wide last = 0, step = 1;
    int empty = 0;
    for (int i = rank - 1; i >= 0; i--) {
        texpr_wide const extent = shape[i] > 0 ? shape[i] : 1;
        if (shape[i] < 0 || (stride && stride[i] < 0)) return -1;
        if (extent > TEXPR_MOST_BYTES || (stride && stride[i] > TEXPR_MOST_BYTES)) return -1;
        last += (extent - 1) * (stride ? stride[i] : step);
        step = stride ? 1 : step * extent;
        if (last > TEXPR_MOST_BYTES || step > TEXPR_MOST_BYTES) return -1;
        empty |= shape[i] == 0;
    }
    last = (last + 1) * item;
    return last > TEXPR_MOST_BYTES ? -1 : empty ? 0 : (int64_t)last;
}

/* Whether no two elements of a strided array share a place: of any two axes, one steps over all of the other. */
static inline int texpr_distinct(int rank, texpr_wide const *shape, texpr_wide const *stride) {
    for (int i = 0; i < rank; i++)
        for (int j = 0; j < i; j++) {
            int over = stride[i] >= shape[j] * stride[j] || stride[j] >= shape[i] * stride[i];
            if (shape[i] > 1 && shape[j] > 1 && !over) return 0;
        }
    for (int i = 0; i < rank; i++)
        if (shape[i] > 1 && stride[i] == 0) return 0;
    return 1;
}

#endif
