/* What `_validate` computes with: the assumptions that a program makes of its data, on elements in the host's memory. */
#ifndef TEXPR_VALIDATE_H
#define TEXPR_VALIDATE_H

#include <stdint.h>
#include <stdlib.h>

#include "texpr_checks.h"

/* An integer array: bytes of an element (negative: signed), extents, and strides in elements (NULL: dense). */
struct tx_integers {
    void const *data;
    int item, rank;
    texpr_wide const *shape, *stride;
};

static inline texpr_wide tx_integer(struct tx_integers const *a, int64_t at) {
    switch (a->item) {
    case -1: return ((int8_t const *)a->data)[at];
    case -2: return ((int16_t const *)a->data)[at];
    case -4: return ((int32_t const *)a->data)[at];
    case -8: return ((int64_t const *)a->data)[at];
    case 1: return ((uint8_t const *)a->data)[at];
    case 2: return ((uint16_t const *)a->data)[at];
    case 4: return ((uint32_t const *)a->data)[at];
    default: return (texpr_wide)((uint64_t const *)a->data)[at];
    }
}

static inline int64_t tx_count(struct tx_integers const *a) {
    int64_t count = 1;
    for (int i = 0; i < a->rank; i++) count *= (int64_t)a->shape[i];
    return count;
}

/* Element number `which`, in the order of indices. */
static inline texpr_wide tx_nth(struct tx_integers const *a, int64_t which) {
    int64_t at = 0;
    if (a->stride == NULL) return tx_integer(a, which);
    for (int i = a->rank - 1; i >= 0; i--) {
        at += which % (int64_t)a->shape[i] * (int64_t)a->stride[i];
        which /= (int64_t)a->shape[i];
    }
    return tx_integer(a, at);
}

/* Whether every element is at least `lo` and below `hi`. */
static inline int tx_in_range(struct tx_integers const *a, texpr_wide lo, texpr_wide hi) {
    int64_t count = tx_count(a);
    for (int64_t i = 0; i < count; i++) {
        texpr_wide value = tx_nth(a, i);
        if (value < lo || value >= hi) return 0;
    }
    return 1;
}

/* Whether no element of an array of rank 1 is less than the one before it. */
static inline int tx_monotone(struct tx_integers const *a) {
    int64_t count = tx_count(a);
    for (int64_t i = 1; i < count; i++)
        if (tx_nth(a, i) < tx_nth(a, i - 1)) return 0;
    return 1;
}

static inline int tx_compare(void const *a, void const *b) {
    uint64_t x = *(uint64_t const *)a, y = *(uint64_t const *)b;
    return (x > y) - (x < y);
}

/* Whether no two elements are equal: 1 or 0, and -1 where there is no memory to tell. */
static inline int tx_injective(struct tx_integers const *a) {
    int64_t count = tx_count(a);
    int distinct = 1;
    uint64_t *sorted;
    if (count < 2) return 1;
    sorted = (uint64_t *)malloc((size_t)count * sizeof *sorted);
    if (sorted == NULL) return -1;
    for (int64_t i = 0; i < count; i++) sorted[i] = (uint64_t)tx_nth(a, i);
    qsort(sorted, (size_t)count, sizeof *sorted, tx_compare);
    for (int64_t i = 1; i < count; i++) distinct &= sorted[i - 1] != sorted[i];
    free(sorted);
    return distinct;
}

#endif
