#include "texpr_device.h"

TX_SOURCE("<plan>")

// store_0, from <plan>:12:1: grid x: ((n + 31) / 32), y: ((m + 7) / 8); block x: 64
extern "C" __global__ void __launch_bounds__(64)
store_0(TX_GLOBAL(float const) x, int const m, int const n, const __grid_constant__ tx_tensor_map zm) {
    int const q = (int)blockIdx.x;
    int const p = (int)blockIdx.y;
    int const t = (int)threadIdx.x;
    TX_SHARED_ALIGNED(float, tile, 256, 128);
    TX_AT(22)  // for r in 0..4 {
    for (int r = 0; r < 4; ++r) {
        TX_AT(23)  // let v: f32 = 0.0:f32
        float v = 0.0f;
        TX_AT(24)  // if ((i32(8 * p + 2 * r + t / 32) < i32(m)) and (i32(32 * q + t % 32) < i32(n))) {
        if (8 * p + 2 * r + t / 32 < m && 32 * q + t % 32 < n) {
            TX_AT(25)  // v = x[8 * p + 2 * r + t / 32, 32 * q + t % 32]
            v = x[(long long)(8 * p + 2 * r + t / 32) * n + 32 * q + t % 32];
        }
        TX_AT(27)  // tile[2 * r + t / 32, t % 32] = (v + 1.0:f32)
        tile[64 * r + t] = v + 1.0f;
    }
    TX_AT(29)  // fence async
    tx_fence_async();
    TX_AT(30)  // barrier block covers RAW tile
    // RAW tile: line 30 -> line 30
    __syncthreads();
    TX_AT(31)  // if (i32(t) == 0:i32) {
    if (t == 0) {
        TX_AT(32)  // tensor store zm[32 * q, 8 * p] = tile[0, 0]
        tx_store_tensor(zm, tile, 0, 32 * q, 8 * p);
        TX_AT(33)  // commit_bulk
        tx_commit_bulk();
        TX_AT(34)  // wait_bulk 0 read covers WAR tile
        // WAR tile: line 34 -> line 34
        tx_wait_bulk_read<0>();
    }
    TX_AT(36)  // barrier block covers WAR tile
    // WAR tile: line 36 -> line 36
    __syncthreads();
    TX_AT(37)  // tile[t / 32, t % 32] = 0.0:f32
    tile[t] = 0.0f;
}
TX_EXPORT(store_0)
