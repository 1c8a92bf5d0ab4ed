#include "texpr_device.h"

TX_SOURCE("plans.te")

// histogram_0, from plans.te:10:1: grid x: ((N + 63) / 64); block x: 64
extern "C" __global__ void __launch_bounds__(64)
histogram_0(TX_GLOBAL(int32_t const) x, TX_GLOBAL(int32_t) h, int const N) {
    int const b = (int)blockIdx.x;
    int const t = (int)threadIdx.x;
    TX_AT(10)  // fn histogram(x: i32[N]): i32[16] { par N |i| reduce(h) { h[x[i]] += 1 } }
    if (64 * b + t < N) {
        atomicAdd(&h[x[64 * b + t]], 1);
    }
}
TX_EXPORT(histogram_0)
