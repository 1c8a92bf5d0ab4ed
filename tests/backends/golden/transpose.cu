#include "texpr_device.h"

TX_SOURCE("plans.te")

// transpose_0, from plans.te:3:1: grid x: ((N + 15) / 16), y: ((M + 15) / 16); block x: 16, y: 16
extern "C" __global__ void __launch_bounds__(256)
transpose_0(TX_GLOBAL(float const) A, TX_GLOBAL(float) B, int const M, int const N) {
    int const bj = (int)blockIdx.x;
    int const bi = (int)blockIdx.y;
    int const tj = (int)threadIdx.x;
    int const ti = (int)threadIdx.y;
    TX_SHARED(float, tile, 272);  // threads of one block touch each element
    TX_AT(4)  // par M |i| { par N |j| { tile[i, j] = A[i, j] } }
    if (16 * bi + ti < M && 16 * bj + tj < N) {
        tile[ti * 17 + tj] = A[(long long)(16 * bi + ti) * N + 16 * bj + tj];
    }
    // RAW tile: line 4 -> line 5
    __syncthreads();
    TX_AT(5)  // par N |j| { par M |i| { B[j, i] = tile[i, j] } }
    if (16 * bi + tj < M && 16 * bj + ti < N) {
        B[(long long)(16 * bj + ti) * M + 16 * bi + tj] = tile[tj * 17 + ti];
    }
}
TX_EXPORT(transpose_0)
