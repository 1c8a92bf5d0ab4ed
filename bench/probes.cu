// What the second-level cache takes of stores and loads of a warp whose lanes get at pieces of lines: `make device` runs it.
//
// A warp stores (loads) 128 bytes, as 128 / P pieces of P bytes, each in another row of 512 bytes, as lanes that hold fragments of
// products do. Prints JSON: for each P, and for a buffer that fits the cache and one that does not, GB/s of what is stored.
#include <cstdio>
#include <cuda_runtime.h>

static bool failed(cudaError_t status, char const *what) {
    if (status != cudaSuccess) std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(status));
    return status != cudaSuccess;
}

template <int P, bool IS_STORE>
__global__ void pieces(float *data, long long rows, float *sink) {
    int const lane = threadIdx.x % 32, per = P / 4, rows_of = 32 / per;
    long long const warps = (long long)gridDim.x * (blockDim.x / 32), own = (long long)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    float total = 0.0f;
    for (long long group = own; group < rows / rows_of; group += warps) {
        float *const row = data + (group * rows_of + lane / per) * 128 + lane % per;
#pragma unroll
        for (int at = 0; at < 128; at += per) {
            if (IS_STORE) row[at] = (float)at;
            else total += __ldcg(row + at);
        }
    }
    if (!IS_STORE && total == 1.5f) *sink = total;
}

template <int P, bool IS_STORE>
static double rate(float *data, size_t bytes, float *sink) {
    long long const rows = (long long)(bytes / 512);
    cudaEvent_t begin, end;
    if (failed(cudaEventCreate(&begin), "event") || failed(cudaEventCreate(&end), "event")) return 0.0;
    float best = 1e30f;
    for (int turn = 0; turn < 6; ++turn) {
        cudaEventRecord(begin);
        pieces<P, IS_STORE><<<132 * 8, 256>>>(data, rows, sink);
        cudaEventRecord(end);
        if (failed(cudaEventSynchronize(end), "kernel")) return 0.0;
        float took = 0.0f;
        cudaEventElapsedTime(&took, begin, end);
        if (turn > 1 && took < best) best = took;
    }
    return (double)bytes / best / 1e6;
}

int main() {
    size_t const small = (size_t)24 << 20, large = (size_t)1 << 30;
    float *data = nullptr, *sink = nullptr;
    if (failed(cudaMalloc(&data, large), "cudaMalloc") || failed(cudaMalloc(&sink, 4), "cudaMalloc")) return 1;
    if (failed(cudaMemset(data, 0, large), "cudaMemset")) return 1;
    std::printf("{\"unit\": \"GB/s\", \"pieces\": {");
    char const *between = "";
#define ONE(P)                                                                                                                   \
    std::printf("%s\"%d\": {\"stored, cached\": %.0f, \"stored\": %.0f, \"loaded, cached\": %.0f, \"loaded\": %.0f}", between, P,    \
                rate<P, true>(data, small, sink), rate<P, true>(data, large, sink), rate<P, false>(data, small, sink),            \
                rate<P, false>(data, large, sink));                                                                               \
    between = ", ";
    ONE(16) ONE(32) ONE(64) ONE(128)
    std::printf("}}\n");
    return failed(cudaGetLastError(), "run");
}
