#include "texpr_cpu.h"

#define TEXPR_OK 0
#define TEXPR_NO_DRIVER (-1)
#define TEXPR_UNSUPPORTED_DEVICE (-2)
#define TEXPR_NULL_POINTER (-3)
#define TEXPR_MISALIGNED (-4)
#define TEXPR_BAD_SIZE (-5)
#define TEXPR_WHERE_FAILS (-6)
#define TEXPR_NO_WORKSPACE (-7)
#define TEXPR_NOT_LOADED (-8)
#define TEXPR_ASSUMPTION_FAILS (-9)
#define TEXPR_NO_MEMORY (-10)
#define TEXPR_TENSOR_BASE (-11)
#define TEXPR_TENSOR_STRIDE (-12)
#define TEXPR_TENSOR_SIZE (-13)
#define TEXPR_NO_TENSOR_MAPS (-14)
#define TEXPR_NO_CLUSTERS (-15)

// saxpy_0, from plans.te:2:1: shared out ((N + 4095) / 4096)
static void saxpy_0(
    float const a,
    float const *TX_RESTRICT x,
    float const *TX_RESTRICT y,
    float *TX_RESTRICT z,
    int const N)
{
    #pragma omp parallel for schedule(static) if ((N + 4095) / 4096 > 1)
    for (int b = 0; b < (N + 4095) / 4096; ++b) {
        // 2: fn saxpy(a: f32, x: f32[N], y: f32[N]): f32[N] { par N |i| { z[i] = a * x[i] + y[i] } }
        #pragma omp simd
        for (int i = 4096 * b; i < tx_min(4096 * b + 4096, N); ++i) {
            z[i] = a * x[i] + y[i];
        }
    }
}

static texpr_status texpr_saxpy_check(float a, float const *x, float const *y, float *z, int64_t N) {
    if (N < 0 || N > 2147418112) return TEXPR_BAD_SIZE;
    {
        texpr_wide const shape[] = {N};
        int64_t const bytes = texpr_span(1, shape, 0, 4);
        if (bytes < 0) return TEXPR_BAD_SIZE;
        if (bytes > 0 && x == 0) return TEXPR_NULL_POINTER;
        if ((uintptr_t)x % 4 != 0) return TEXPR_MISALIGNED;
    }
    {
        texpr_wide const shape[] = {N};
        int64_t const bytes = texpr_span(1, shape, 0, 4);
        if (bytes < 0) return TEXPR_BAD_SIZE;
        if (bytes > 0 && y == 0) return TEXPR_NULL_POINTER;
        if ((uintptr_t)y % 4 != 0) return TEXPR_MISALIGNED;
    }
    {
        texpr_wide const shape[] = {N};
        int64_t const bytes = texpr_span(1, shape, 0, 4);
        if (bytes < 0) return TEXPR_BAD_SIZE;
        if (bytes > 0 && z == 0) return TEXPR_NULL_POINTER;
        if ((uintptr_t)z % 4 != 0) return TEXPR_MISALIGNED;
    }
    return TEXPR_OK;
}

static texpr_status texpr_saxpy_memory(int64_t N, uint64_t *texpr_result) {
    if (texpr_result == nullptr) return TEXPR_NULL_POINTER;
    if (N < 0 || N > 2147418112) return TEXPR_BAD_SIZE;
    texpr_wide const texpr_total = 0;
    if (texpr_total > TEXPR_MOST_BYTES) return TEXPR_BAD_SIZE;
    *texpr_result = (uint64_t)texpr_total;
    return TEXPR_OK;
}

static void texpr_saxpy_steps(
    char *workspace,
    float const a,
    float const *const x,
    float const *const y,
    float *const z,
    int const N)
{
    (void)workspace;
    saxpy_0(a, x, y, z, N);
}

TX_PUBLIC texpr_status texpr_saxpy(
    void *stream,
    void *workspace,
    float a,
    float const *x,
    float const *y,
    float *z,
    int64_t N)
{
    (void)stream;
    if (!tx_is_supported()) return TEXPR_UNSUPPORTED_DEVICE;
    texpr_status texpr_found = texpr_saxpy_check(a, x, y, z, N);
    if (texpr_found != TEXPR_OK) return texpr_found;
    uint64_t texpr_bytes = 0;
    texpr_found = texpr_saxpy_memory(N, &texpr_bytes);
    if (texpr_found != TEXPR_OK) return texpr_found;
    if (texpr_bytes > 0 && workspace == nullptr) return TEXPR_NO_WORKSPACE;
    if (texpr_bytes > 0 && (uintptr_t)workspace % 256 != 0) return TEXPR_MISALIGNED;
    texpr_saxpy_steps(static_cast<char *>(workspace), a, x, y, z, (int)N);
    return TEXPR_OK;
}

TX_PUBLIC texpr_status texpr_saxpy_validate(
    void *stream,
    void *workspace,
    float a,
    float const *x,
    float const *y,
    float *z,
    int64_t N)
{
    (void)stream, (void)workspace;
    texpr_status const texpr_found = texpr_saxpy_check(a, x, y, z, N);
    if (texpr_found != TEXPR_OK) return texpr_found;
    return TEXPR_OK;
}

TX_PUBLIC texpr_status texpr_saxpy_workspace_bytes(int64_t N, uint64_t *texpr_result) {
    return texpr_saxpy_memory(N, texpr_result);
}

TX_PUBLIC texpr_status texpr_saxpy_unload(void) { return TEXPR_OK; }
TX_PUBLIC texpr_status texpr_saxpy_load(int) { if (!tx_is_supported()) return TEXPR_UNSUPPORTED_DEVICE; return TEXPR_OK; }
TX_PUBLIC texpr_status texpr_saxpy_supported(int) { if (!tx_is_supported()) return TEXPR_UNSUPPORTED_DEVICE; return TEXPR_OK; }
