#include "texpr_device.h"

TX_SOURCE("plans.te")

// saxpy_0, from plans.te:2:1: grid x: ((N + 255) / 256); block x: 256
extern "C" __global__ void __launch_bounds__(256)
saxpy_0(float const a, TX_GLOBAL(float const) x, TX_GLOBAL(float const) y, TX_GLOBAL(float) z, int const N) {
    int const b = (int)blockIdx.x;
    int const t = (int)threadIdx.x;
    TX_AT(2)  // fn saxpy(a: f32, x: f32[N], y: f32[N]): f32[N] { par N |i| { z[i] = a * x[i] + y[i] } }
    int const i = 256 * b + t;
    if (i < N) {
        z[i] = a * x[i] + y[i];
    }
}
TX_EXPORT(saxpy_0)
