#include "texpr_device.h"

TX_SOURCE("plans.te")

// rows_0, from plans.te:7:1: grid x: M; block x: 128
extern "C" __global__ void __launch_bounds__(128)
rows_0(TX_GLOBAL(float const) A, TX_GLOBAL(float) s, int const M, int const N) {
    int const i = (int)blockIdx.x;
    int const t = (int)threadIdx.x;
    TX_SHARED(float, warps, 4);
    TX_AT(8)  // par N |j| reduce(s) { s += A[i, j] }  .
    float acc = 0.0f;
    for (int j = t; j < N; j += 128) {
        acc += A[(long long)i * N + j];
    }
    float const other = __shfl_xor_sync(0xffffffffu, acc, 16, 32);
    acc += other;
    float const other_1 = __shfl_xor_sync(0xffffffffu, acc, 8, 32);
    acc += other_1;
    float const other_2 = __shfl_xor_sync(0xffffffffu, acc, 4, 32);
    acc += other_2;
    float const other_3 = __shfl_xor_sync(0xffffffffu, acc, 2, 32);
    acc += other_3;
    float const other_4 = __shfl_xor_sync(0xffffffffu, acc, 1, 32);
    acc += other_4;
    if (t % 32 == 0) {
        warps[t / 32] = acc;
    }
    // RAW partial sums: line 8 -> line 8
    __syncthreads();
    float total = 0.0f;
    #pragma unroll
    for (int w = 0; w < 4; ++w) {
        total += warps[w];
    }
    if (t == 0) {
        s[i] = total;
    }
}
TX_EXPORT(rows_0)
