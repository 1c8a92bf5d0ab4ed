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

// copy_now: shared out M
static void copy_now(float const *TX_RESTRICT A, float *TX_RESTRICT now, int const M, int const N) {
    #pragma omp parallel for schedule(static) if (M > 1)
    for (int i = 0; i < M; ++i) {
        #pragma omp simd
        for (int j = 0; j < N; ++j) {
            now[(long long)i * N + j] = A[(long long)i * N + j];
        }
    }
}

// copy_next: shared out M
static void copy_next(float const *TX_RESTRICT A, float *TX_RESTRICT next, int const M, int const N) {
    #pragma omp parallel for schedule(static) if (M > 1)
    for (int i = 0; i < M; ++i) {
        #pragma omp simd
        for (int j = 0; j < N; ++j) {
            next[(long long)i * N + j] = A[(long long)i * N + j];
        }
    }
}

// heat_there: shared out M - 2
static void heat_there(float *TX_RESTRICT now, float *TX_RESTRICT next, int const M, int const N) {
    #pragma omp parallel for schedule(static) if (M - 2 > 1)
    for (int i = 0; i < M - 2; ++i) {
        #pragma omp simd
        for (int j = 0; j < N - 2; ++j) {
            next[(long long)(i + 1) * N + j + 1] = 0.25f * (now[(long long)i * N + j + 1] + now[(long long)(i + 2) * N + j + 1] + now[(long long)(i + 1) * N + j] + now[(long long)(i + 1) * N + j + 2]);
        }
    }
}

// heat_back: shared out M - 2
static void heat_back(float *TX_RESTRICT next, float *TX_RESTRICT now, int const M, int const N) {
    #pragma omp parallel for schedule(static) if (M - 2 > 1)
    for (int i = 0; i < M - 2; ++i) {
        #pragma omp simd
        for (int j = 0; j < N - 2; ++j) {
            now[(long long)(i + 1) * N + j + 1] = 0.25f * (next[(long long)i * N + j + 1] + next[(long long)(i + 2) * N + j + 1] + next[(long long)(i + 1) * N + j] + next[(long long)(i + 1) * N + j + 2]);
        }
    }
}

static texpr_status texpr_heat_check(float const *A, float *now, int64_t M, int64_t N, int64_t T) {
    if (M < 0 || M > 2147418112) return TEXPR_BAD_SIZE;
    if (N < 0 || N > 2147418112) return TEXPR_BAD_SIZE;
    if (T < 0 || T > 2147418112) return TEXPR_BAD_SIZE;
    if (!(M >= 2)) return TEXPR_WHERE_FAILS;
    if (!(N >= 2)) return TEXPR_WHERE_FAILS;
    {
        texpr_wide const shape[] = {M, N};
        int64_t const bytes = texpr_span(2, shape, 0, 4);
        if (bytes < 0) return TEXPR_BAD_SIZE;
    }
    {
        texpr_wide const shape[] = {M, N};
        int64_t const bytes = texpr_span(2, shape, 0, 4);
        if (bytes < 0) return TEXPR_BAD_SIZE;
        if (bytes > 0 && A == 0) return TEXPR_NULL_POINTER;
        if ((uintptr_t)A % 4 != 0) return TEXPR_MISALIGNED;
    }
    {
        texpr_wide const shape[] = {M, N};
        int64_t const bytes = texpr_span(2, shape, 0, 4);
        if (bytes < 0) return TEXPR_BAD_SIZE;
        if (bytes > 0 && now == 0) return TEXPR_NULL_POINTER;
        if ((uintptr_t)now % 4 != 0) return TEXPR_MISALIGNED;
    }
    return TEXPR_OK;
}

static texpr_status texpr_heat_memory(int64_t M, int64_t N, int64_t T, uint64_t *texpr_result) {
    if (texpr_result == nullptr) return TEXPR_NULL_POINTER;
    if (M < 0 || M > 2147418112) return TEXPR_BAD_SIZE;
    if (N < 0 || N > 2147418112) return TEXPR_BAD_SIZE;
    if (T < 0 || T > 2147418112) return TEXPR_BAD_SIZE;
    if (!(M >= 2)) return TEXPR_WHERE_FAILS;
    if (!(N >= 2)) return TEXPR_WHERE_FAILS;
    {
        texpr_wide const shape[] = {M, N};
        int64_t const bytes = texpr_span(2, shape, 0, 4);
        if (bytes < 0) return TEXPR_BAD_SIZE;
    }
    texpr_wide const texpr_total = texpr_aligned(4LL * M * N);
    if (texpr_total > TEXPR_MOST_BYTES) return TEXPR_BAD_SIZE;
    *texpr_result = (uint64_t)texpr_total;
    return TEXPR_OK;
}

static void texpr_heat_steps(
    char *workspace,
    float const *const A,
    float *const now,
    int const M,
    int const N,
    int const T)
{
    (void)workspace;
    float *const next = reinterpret_cast<float *>(workspace);
    workspace += texpr_aligned(4LL * M * N);
    copy_now(A, now, M, N);
    copy_next(A, next, M, N);
    for (int t = 0; t < T; ++t) {
        heat_there(now, next, M, N);
        heat_back(next, now, M, N);
    }
}

TX_PUBLIC texpr_status texpr_heat(
    void *stream,
    void *workspace,
    float const *A,
    float *now,
    int64_t M,
    int64_t N,
    int64_t T)
{
    (void)stream;
    if (!tx_is_supported()) return TEXPR_UNSUPPORTED_DEVICE;
    texpr_status texpr_found = texpr_heat_check(A, now, M, N, T);
    if (texpr_found != TEXPR_OK) return texpr_found;
    uint64_t texpr_bytes = 0;
    texpr_found = texpr_heat_memory(M, N, T, &texpr_bytes);
    if (texpr_found != TEXPR_OK) return texpr_found;
    if (texpr_bytes > 0 && workspace == nullptr) return TEXPR_NO_WORKSPACE;
    if (texpr_bytes > 0 && (uintptr_t)workspace % 256 != 0) return TEXPR_MISALIGNED;
    texpr_heat_steps(static_cast<char *>(workspace), A, now, (int)M, (int)N, (int)T);
    return TEXPR_OK;
}

TX_PUBLIC texpr_status texpr_heat_validate(
    void *stream,
    void *workspace,
    float const *A,
    float *now,
    int64_t M,
    int64_t N,
    int64_t T)
{
    (void)stream, (void)workspace;
    texpr_status const texpr_found = texpr_heat_check(A, now, M, N, T);
    if (texpr_found != TEXPR_OK) return texpr_found;
    return TEXPR_OK;
}

TX_PUBLIC texpr_status texpr_heat_workspace_bytes(int64_t M, int64_t N, int64_t T, uint64_t *texpr_result) {
    return texpr_heat_memory(M, N, T, texpr_result);
}

TX_PUBLIC texpr_status texpr_heat_unload(void) { return TEXPR_OK; }
TX_PUBLIC texpr_status texpr_heat_load(int) { if (!tx_is_supported()) return TEXPR_UNSUPPORTED_DEVICE; return TEXPR_OK; }
TX_PUBLIC texpr_status texpr_heat_supported(int) { if (!tx_is_supported()) return TEXPR_UNSUPPORTED_DEVICE; return TEXPR_OK; }
