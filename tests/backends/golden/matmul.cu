#include "texpr_device.h"

TX_SOURCE("plans.te")

// matmul_0, from plans.te:11:1: grid x: ((N + 31) / 32), y: ((M + 7) / 8); block x: 32, y: 8
extern "C" __global__ void __launch_bounds__(256)
matmul_0(
    TX_GLOBAL(tx_bf16 const) A,
    TX_GLOBAL(tx_bf16 const) B,
    TX_GLOBAL(float) C,
    int const M,
    int const N,
    int const K)
{
    int const bj = (int)blockIdx.x;
    int const bi = (int)blockIdx.y;
    int const tj = (int)threadIdx.x;
    int const ti = (int)threadIdx.y;
    TX_AT(12)  // seq K |k| reduce(C) { C[i, j] += A[i, k] * B[k, j] }
    if (8 * bi + ti < M && 32 * bj + tj < N) {
        float acc = 0.0f;
        for (int k = 0; k < K; ++k) {
            acc += tx_to<float>(A[(long long)(8 * bi + ti) * K + k]) * tx_to<float>(B[(long long)k * N + 32 * bj + tj]);
        }
        C[(long long)(8 * bi + ti) * N + 32 * bj + tj] = acc;
    }
}
TX_EXPORT(matmul_0)
