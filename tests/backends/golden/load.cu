#include "texpr_device.h"

TX_SOURCE("<plan>")

// load_0, from <plan>:12:1: grid x: b, y: a; block x: 64
extern "C" __global__ void __launch_bounds__(64)
load_0(TX_GLOBAL(float) z, int const a, int const b, const __grid_constant__ tx_tensor_map xm) {
    int const q = (int)blockIdx.x;
    int const p = (int)blockIdx.y;
    int const t = (int)threadIdx.x;
    TX_SHARED_ALIGNED(float, tile, 512, 128);
    TX_BARRIERS(full, 1);
    TX_AT(23)  // if (i32(t) == 0:i32) {
    if (t == 0) {
        TX_AT(24)  // mbarrier init full[0] count 1
        tx_barrier_init(full, 0, 1);
        TX_AT(25)  // fence init
        tx_fence_init();
    }
    TX_AT(27)  // barrier block
    __syncthreads();
    TX_AT(28)  // if (i32(t) == 0:i32) {
    if (t == 0) {
        TX_AT(29)  // prefetch xm
        tx_prefetch(xm);
        TX_AT(30)  // mbarrier expect full[0] bytes 2048
        tx_barrier_expect(full, 0, 2048);
        TX_AT(31)  // tensor load tile[0, 0] = xm[32 * q - 4, 16 * p - 1] arrives full[0]
        tx_load_tensor(tile, 0, xm, full, 0, 32LL * q - 4, 16LL * p - 1);
    }
    TX_AT(33)  // mbarrier wait full[0] parity 0 covers RAW tile
    // RAW tile: line 33 -> line 33
    tx_barrier_wait(full, 0, 0);
    TX_AT(34)  // for r in 0..8 {
    for (int r = 0; r < 8; ++r) {
        TX_AT(35)  // z[16 * p + 2 * r + t / 32, 32 * q + t % 32] = tile[2 * r + t / 32, t % 32]
        z[(16LL * p + 2 * r + t / 32) * (32LL * b) + 32LL * q + t % 32] = tile[64 * r + t];
    }
}
TX_EXPORT(load_0)
