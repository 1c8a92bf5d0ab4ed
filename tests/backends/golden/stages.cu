#include "texpr_device.h"

TX_SOURCE("<plan>")

// stages_0, from <plan>:9:1: grid 1; block x: 64
extern "C" __global__ void __launch_bounds__(64)
stages_0(TX_GLOBAL(float const) x, TX_GLOBAL(float) z, int const c) {
    int const t = (int)threadIdx.x;
    TX_SHARED(float, stage, 512);
    TX_AT(17)  // copy stage[0, 4 * t] = x[0, 4 * t] when (i32(0) < i32(c)) count 4
    tx_copy_async<4>(stage, 4 * t, x, 4 * t, 0 < c);
    TX_AT(18)  // commit
    tx_commit_async();
    TX_AT(19)  // let s0: f32 = 0.0:f32
    float s0 = 0.0f;
    TX_AT(20)  // let s1: f32 = 0.0:f32
    float s1 = 0.0f;
    TX_AT(21)  // let s2: f32 = 0.0:f32
    float s2 = 0.0f;
    TX_AT(22)  // let s3: f32 = 0.0:f32
    float s3 = 0.0f;
    TX_AT(23)  // for i in 0..c {
    for (int i = 0; i < c; ++i) {
        TX_AT(24)  // copy stage[(i + 1) % 2, 4 * t] = x[i + 1, 4 * t] when (i32(i + 1) < i32(c)) count 4
        tx_copy_async<4>(stage, (i + 1) % 2 * 256 + 4 * t, x, (long long)(i + 1) * 256 + 4 * t, i + 1 < c);
        TX_AT(25)  // commit
        tx_commit_async();
        TX_AT(26)  // wait 1 covers RAW stage
        // RAW stage: line 26 -> line 26
        tx_wait_async<1>();
        TX_AT(27)  // barrier block covers RAW stage
        // RAW stage: line 27 -> line 27
        __syncthreads();
        TX_AT(28)  // vector v0, v1, v2, v3 = stage[i % 2, 4 * ((t + 33) % 64)]
        tx_vec<float, 4> const v = tx_load<4>(stage, i % 2 * 256 + 4 * ((t + 33) % 64));
        TX_AT(29)  // s0 = (s0 + v0)
        s0 += v[0];
        TX_AT(30)  // s1 = (s1 + v1)
        s1 += v[1];
        TX_AT(31)  // s2 = (s2 + v2)
        s2 += v[2];
        TX_AT(32)  // s3 = (s3 + v3)
        s3 += v[3];
        TX_AT(33)  // barrier block covers WAR stage carried i
        // WAR stage: line 33 -> line 33, carried by i
        __syncthreads();
    }
    TX_AT(35)  // wait 0
    tx_wait_async<0>();
    TX_AT(36)  // vector z[4 * t] = s0, s1, s2, s3
    tx_store(z, 4 * t, s0, s1, s2, s3);
}
TX_EXPORT(stages_0)
