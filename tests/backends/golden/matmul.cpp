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

// matmul_0, from plans.te:11:1: shared out (M / 4), (N / 16)
static void matmul_0(
    float const *TX_RESTRICT A,
    float const *TX_RESTRICT B,
    float *TX_RESTRICT C,
    int const M,
    int const N,
    int const K)
{
    #pragma omp parallel for collapse(2) schedule(static) if (M / 4 > 1 || N / 16 > 1)
    for (int bi = 0; bi < M / 4; ++bi) {
        for (int bj = 0; bj < N / 16; ++bj) {
            alignas(64) float tile[64];  // one core touches it
            // 12: seq K |k| reduce(C) { C[i, j] += A[i, k] * B[k, j] }
            TX_UNROLL(4)
            for (int ti = 0; ti < 4; ++ti) {
                TX_UNROLL(4)
                for (int tj = 0; tj < 16; tj += TX_LANES(float)) {
                    tx_row(tile[ti * 16 + tj]) = tx_same(0.0f);
                }
            }
            for (int k = 0; k < K; ++k) {
                TX_UNROLL(4)
                for (int ti = 0; ti < 4; ++ti) {
                    #pragma omp simd
                    for (int tj = 0; tj < 16; ++tj) {
                        tile[ti * 16 + tj] += A[(long long)(4 * bi + ti) * K + k] * B[(long long)k * N + 16 * bj + tj];
                    }
                }
            }
            TX_UNROLL(4)
            for (int ti = 0; ti < 4; ++ti) {
                TX_UNROLL(4)
                for (int tj = 0; tj < 16; tj += TX_LANES(float)) {
                    tx_row(C[(long long)(4 * bi + ti) * N + 16 * bj + tj]) = tx_row(tile[ti * 16 + tj]);
                }
            }
        }
    }
}

static texpr_status texpr_matmul_check(float const *A, float const *B, float *C, int64_t M, int64_t N, int64_t K) {
    if (M < 0 || M > 2147418112) return TEXPR_BAD_SIZE;
    if (N < 0 || N > 2147418112) return TEXPR_BAD_SIZE;
    if (K < 0 || K > 2147418112) return TEXPR_BAD_SIZE;
    if (!(M % 4 == 0)) return TEXPR_WHERE_FAILS;
    if (!(N % 16 == 0)) return TEXPR_WHERE_FAILS;
    {
        texpr_wide const shape[] = {M, K};
        int64_t const bytes = texpr_span(2, shape, 0, 4);
        if (bytes < 0) return TEXPR_BAD_SIZE;
        if (bytes > 0 && A == 0) return TEXPR_NULL_POINTER;
        if ((uintptr_t)A % 4 != 0) return TEXPR_MISALIGNED;
    }
    {
        texpr_wide const shape[] = {K, N};
        int64_t const bytes = texpr_span(2, shape, 0, 4);
        if (bytes < 0) return TEXPR_BAD_SIZE;
        if (bytes > 0 && B == 0) return TEXPR_NULL_POINTER;
        if ((uintptr_t)B % 4 != 0) return TEXPR_MISALIGNED;
    }
    {
        texpr_wide const shape[] = {M, N};
        int64_t const bytes = texpr_span(2, shape, 0, 4);
        if (bytes < 0) return TEXPR_BAD_SIZE;
        if (bytes > 0 && C == 0) return TEXPR_NULL_POINTER;
        if ((uintptr_t)C % 4 != 0) return TEXPR_MISALIGNED;
    }
    return TEXPR_OK;
}

static texpr_status texpr_matmul_memory(int64_t M, int64_t N, int64_t K, uint64_t *texpr_result) {
    if (texpr_result == nullptr) return TEXPR_NULL_POINTER;
    if (M < 0 || M > 2147418112) return TEXPR_BAD_SIZE;
    if (N < 0 || N > 2147418112) return TEXPR_BAD_SIZE;
    if (K < 0 || K > 2147418112) return TEXPR_BAD_SIZE;
    if (!(M % 4 == 0)) return TEXPR_WHERE_FAILS;
    if (!(N % 16 == 0)) return TEXPR_WHERE_FAILS;
    texpr_wide const texpr_total = 0;
    if (texpr_total > TEXPR_MOST_BYTES) return TEXPR_BAD_SIZE;
    *texpr_result = (uint64_t)texpr_total;
    return TEXPR_OK;
}

static void texpr_matmul_steps(
    char *workspace,
    float const *const A,
    float const *const B,
    float *const C,
    int const M,
    int const N,
    int const K)
{
    (void)workspace;
    matmul_0(A, B, C, M, N, K);
}

TX_PUBLIC texpr_status texpr_matmul(
    void *stream,
    void *workspace,
    float const *A,
    float const *B,
    float *C,
    int64_t M,
    int64_t N,
    int64_t K)
{
    (void)stream;
    if (!tx_is_supported()) return TEXPR_UNSUPPORTED_DEVICE;
    texpr_status texpr_found = texpr_matmul_check(A, B, C, M, N, K);
    if (texpr_found != TEXPR_OK) return texpr_found;
    uint64_t texpr_bytes = 0;
    texpr_found = texpr_matmul_memory(M, N, K, &texpr_bytes);
    if (texpr_found != TEXPR_OK) return texpr_found;
    if (texpr_bytes > 0 && workspace == nullptr) return TEXPR_NO_WORKSPACE;
    if (texpr_bytes > 0 && (uintptr_t)workspace % 256 != 0) return TEXPR_MISALIGNED;
    texpr_matmul_steps(static_cast<char *>(workspace), A, B, C, (int)M, (int)N, (int)K);
    return TEXPR_OK;
}

TX_PUBLIC texpr_status texpr_matmul_validate(
    void *stream,
    void *workspace,
    float const *A,
    float const *B,
    float *C,
    int64_t M,
    int64_t N,
    int64_t K)
{
    (void)stream, (void)workspace;
    texpr_status const texpr_found = texpr_matmul_check(A, B, C, M, N, K);
    if (texpr_found != TEXPR_OK) return texpr_found;
    return TEXPR_OK;
}

TX_PUBLIC texpr_status texpr_matmul_workspace_bytes(int64_t M, int64_t N, int64_t K, uint64_t *texpr_result) {
    return texpr_matmul_memory(M, N, K, texpr_result);
}

TX_PUBLIC texpr_status texpr_matmul_unload(void) { return TEXPR_OK; }
TX_PUBLIC texpr_status texpr_matmul_load(int) { if (!tx_is_supported()) return TEXPR_UNSUPPORTED_DEVICE; return TEXPR_OK; }
TX_PUBLIC texpr_status texpr_matmul_supported(int) { if (!tx_is_supported()) return TEXPR_UNSUPPORTED_DEVICE; return TEXPR_OK; }
