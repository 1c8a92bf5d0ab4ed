/* What the emulator's rate is measured on: barriers alone, a tile that is read and written between barriers, and threads that
   do next to nothing. Blocks of 256 threads. */
#include "texpr_device.h"
TX_SOURCE("bench.te")

extern "C" __global__ void __launch_bounds__(256)
barriers_0(int const times) {
    for (int i = 0; i < times; ++i) {
        __syncthreads();
    }
}
TX_EXPORT(barriers_0)

extern "C" __global__ void __launch_bounds__(256)
tile_0(int const times, TX_GLOBAL(float) out) {
    TX_SHARED(float, tile, 256);
    int const t = threadIdx.x;
    TX_AT(1)
    tile[t] = (float)t;
    __syncthreads();
    for (int i = 0; i < times; ++i) {
        TX_AT(2)
        float const next = tile[(t + 1) % 256];
        __syncthreads();
        TX_AT(3)
        tile[t] = next;
        __syncthreads();
    }
    TX_AT(4)
    out[blockIdx.x * 256 + t] = tile[t];
}
TX_EXPORT(tile_0)

extern "C" __global__ void __launch_bounds__(256)
saxpy_0(float const a, TX_GLOBAL(float const) x, int const n, TX_GLOBAL(float) z) {
    int const i = blockIdx.x * 256 + threadIdx.x;
    TX_AT(1)
    if (i < n) {
        TX_AT(2)
        z[i] = a * x[i] + z[i];
    }
}
TX_EXPORT(saxpy_0)
