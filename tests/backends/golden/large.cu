#include "texpr_device.h"

TX_SOURCE("<plan>")

// large_0, from <plan>:10:1: grid 1; block x: 64
extern "C" __global__ void __launch_bounds__(64)
large_0(TX_GLOBAL(float) z, int const c, const __grid_constant__ tx_tensor_map xm) {
    int const t = (int)threadIdx.x;
    TX_SHARED_BLOCK(61496);
    TX_SHARED_AT(float, stage, 15360, 128, 0);
    TX_BARRIERS_AT(full, 3, 61440);
    TX_BARRIERS_AT(empty, 3, 61472);
    TX_AT(20)  // if (i32(t) == 0:i32) {
    if (t == 0) {
        TX_AT(21)  // for s in 0..3 unroll {
        #pragma unroll
        for (int s = 0; s < 3; ++s) {
            TX_AT(22)  // mbarrier init full[s] count 1
            tx_barrier_init(full, s, 1);
            TX_AT(23)  // mbarrier init empty[s] count 64
            tx_barrier_init(empty, s, 64);
        }
        TX_AT(25)  // fence init
        tx_fence_init();
    }
    TX_AT(27)  // barrier block
    __syncthreads();
    TX_AT(28)  // if (i32(t) == 0:i32) {
    if (t == 0) {
        TX_AT(29)  // for i in 0..min(c, 3) {
        for (int i = 0; i < tx_min(c, 3); ++i) {
            TX_AT(30)  // mbarrier expect full[i] bytes 1024
            tx_barrier_expect(full, i, 1024);
            TX_AT(31)  // tensor load stage[10 * i, 0] = xm[0, i] arrives full[i]
            tx_load_tensor(stage, 10 * i * 256, xm, full, i, 0, i);
        }
    }
    TX_AT(34)  // let s0: f32 = 0.0:f32
    float s0 = 0.0f;
    TX_AT(35)  // let s1: f32 = 0.0:f32
    float s1 = 0.0f;
    TX_AT(36)  // let s2: f32 = 0.0:f32
    float s2 = 0.0f;
    TX_AT(37)  // let s3: f32 = 0.0:f32
    float s3 = 0.0f;
    TX_AT(38)  // for i in 0..c {
    for (int i = 0; i < c; ++i) {
        TX_AT(39)  // mbarrier wait full[i % 3] parity (i / 3) % 2 covers RAW stage
        // RAW stage: line 39 -> line 39
        tx_barrier_wait(full, i % 3, i / 3 % 2);
        TX_AT(40)  // vector v0, v1, v2, v3 = stage[10 * (i % 3), 4 * t]
        tx_vec<float, 4> const v = tx_load<4>(stage, 10 * (i % 3) * 256 + 4 * t);
        TX_AT(41)  // s0 = (s0 + v0)
        s0 += v[0];
        TX_AT(42)  // s1 = (s1 + v1)
        s1 += v[1];
        TX_AT(43)  // s2 = (s2 + v2)
        s2 += v[2];
        TX_AT(44)  // s3 = (s3 + v3)
        s3 += v[3];
        TX_AT(45)  // fence async
        tx_fence_async();
        TX_AT(46)  // mbarrier arrive empty[i % 3]
        tx_barrier_arrive(empty, i % 3);
        TX_AT(47)  // if ((i32(t) == 0:i32) and (i32(i + 3) < i32(c))) {
        if (t == 0 && i + 3 < c) {
            TX_AT(48)  // mbarrier wait empty[i % 3] parity (i / 3) % 2 covers WAR stage carried i
            // WAR stage: line 48 -> line 48, carried by i
            tx_barrier_wait(empty, i % 3, i / 3 % 2);
            TX_AT(49)  // mbarrier expect full[i % 3] bytes 1024
            tx_barrier_expect(full, i % 3, 1024);
            TX_AT(50)  // tensor load stage[10 * (i % 3), 0] = xm[0, i + 3] arrives full[i % 3]
            tx_load_tensor(stage, 10 * (i % 3) * 256, xm, full, i % 3, 0, i + 3);
        }
    }
    TX_AT(53)  // vector z[4 * t] = s0, s1, s2, s3
    tx_store(z, 4 * t, s0, s1, s2, s3);
}
TX_EXPORT(large_0)
