#include "texpr_device.h"

TX_SOURCE("<plan>")

// flip_0, from <plan>:10:1: grid x: (m / 16); block x: 64
extern "C" __global__ void __launch_bounds__(64, 4)
flip_0(TX_GLOBAL(float const) x, TX_GLOBAL(float) z, int const m) {
    int const b = (int)blockIdx.x;
    int const t = (int)threadIdx.x;
    TX_SHARED(float, tile, 1088);
    TX_AT(20)  // for r in 0..4 unroll {
    #pragma unroll
    for (int r = 0; r < 4; ++r) {
        TX_AT(21)  // vector a0, a1, a2, a3 = x[16 * b + 4 * r + t / 16, 4 * (t % 16)]
        tx_vec<float, 4> const a = tx_load<4>(x, (long long)(16 * b + 4 * r + t / 16) * 64 + 4 * (t % 16));
        TX_AT(22)  // vector tile[4 * r + t / 16, 4 * (t % 16)] = a0, a1, a2, a3
        tx_store(tile, (4 * r + t / 16) * 68 + 4 * (t % 16), a[0], a[1], a[2], a[3]);
    }
    TX_AT(24)  // barrier block covers RAW tile
    // RAW tile: line 24 -> line 24
    __syncthreads();
    TX_AT(25)  // for q in 0..4 unroll 2 {
    #pragma unroll 2
    for (int q = 0; q < 4; ++q) {
        TX_AT(26)  // vector z[t, 16 * b + 4 * q] = tile[4 * q, t], tile[4 * q + 1, t], tile[4 * q + 2, t], tile[4 * q + 3, t]
        tx_store(z, (long long)t * m + 16 * b + 4 * q, tile[4 * q * 68 + t], tile[(4 * q + 1) * 68 + t], tile[(4 * q + 2) * 68 + t], tile[(4 * q + 3) * 68 + t]);
    }
}
TX_EXPORT(flip_0)
