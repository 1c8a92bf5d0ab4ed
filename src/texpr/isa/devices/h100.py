"""H100 SXM5."""

from texpr.isa.speed import Bandwidth, Between, Device, Figure, Latency, Matrix, Rates

_PAPER = "NVIDIA H100 Tensor Core GPU Architecture, whitepaper 1.04"
_SHEET = "NVIDIA H100 Tensor Core GPU, data sheet"
_GUIDE = "CUDA C++ Programming Guide, Arithmetic Instructions, compute capability 9.0"
_LADDER = "fast.cu, README.md at commit a1bb7b2, 8192³ on an H100 SXM"
_LUO = "Luo et al., Benchmarking and Dissecting the Nvidia Hopper GPU Architecture, arXiv 2402.13499 (H100 PCIe)"

DEVICE = Device(
    name="H100 SXM5",
    targets=("sm_90", "sm_90a"),
    cards=("NVIDIA H100 80GB HBM3",),
    multiprocessors=Figure(132, _PAPER),
    schedulers=4,
    clock=Figure(1980, f"{_SHEET}: 67 TFLOP/s of f32 by 132 multiprocessors of 128 multiply-adds a clock"),
    rates=Rates(
        issue=Figure(128, f"{_PAPER}: four schedulers, one instruction of 32 lanes a clock each"),
        fma=Figure(128, _GUIDE),
        alu=Figure(64, _GUIDE),
        imad=Figure(64, _GUIDE),
        half=Figure(128, f"{_GUIDE}: 256 results of two lanes"),
        fp64=Figure(64, _GUIDE),
        special=Figure(16, _GUIDE),
        lsu=Figure(32, f"{_PAPER}: 32 units that load and store"),
    ),
    matrix=Matrix(
        f16=Figure(2048, f"{_PAPER}: 989.4 TFLOP/s, dense"),
        tf32=Figure(1024, f"{_PAPER}: 494.7 TFLOP/s, dense"),
        f8=Figure(4096, f"{_PAPER}: 1978.9 TFLOP/s, dense"),
        i8=Figure(4096, f"{_PAPER}: 1978.9 TOP/s, dense"),
        f64=Figure(128, f"{_PAPER}: 66.9 TFLOP/s"),
        clock=Figure(1830, f"{_PAPER}: 989.4 TFLOP/s by 132 multiprocessors of 2048 multiply-adds a clock"),
        sync=Figure(0.63, f"{_LUO}: mma.sync reaches 62.9 % of the peak"),
    ),
    bandwidth=Bandwidth(
        dram=Figure(3.352e12, f"{_SHEET}: 3.35 TB/s, five stacks of HBM3"),
        l2=Figure(5120, "whitepaper of the A100: 5120 bytes a clock; of the H100 not published, measured below it"),
        l1=Figure(128, f"{_LUO}: 125.8 bytes a clock measured of 128"),
        shared=Figure(128, "CUDA C++ Programming Guide, Shared Memory: 32 banks of 32 bits a clock"),
    ),
    latency=Latency(
        fixed=Figure(4, f"{_LUO}; the stalls that ptxas writes"),
        shared=Figure(29, _LUO),
        l1=Figure(41, _LUO),
        l2=Figure(263, _LUO),
        dram=Figure(479, _LUO),
        special=Figure(18, "assumed"),
        shuffle=Figure(24, "assumed"),
        matrix=Figure(33, f"{_LUO}: mma m16n8k16"),
        fp64=Figure(8, "assumed"),
        constant=Figure(30, "assumed"),
        barrier=Figure(20, "assumed"),
    ),
    between=Between(
        begin=Figure(3.0, f"3 to 6 by blocks that an H200 was measured with; 4 by {_LADDER}: kernels 4 and 5, 16 tiles each"),
        store=Figure(0.0142, f"{_LADDER}: kernels 7 and 11, 1376 and 1361 µs, 16 tiles of 64 KiB each"),
    ),
    cache=Figure(50 << 20, f"{_PAPER}: 50 MB"),
)
