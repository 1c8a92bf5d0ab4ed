"""A100 SXM4 with 80 GB."""

from texpr.isa.speed import UNKNOWN, Bandwidth, Device, Figure, Latency, Matrix, Rates

_PAPER = "NVIDIA A100 Tensor Core GPU Architecture, whitepaper 1.0"
_SHEET = "NVIDIA A100 80GB, data sheet"
_GUIDE = "CUDA C++ Programming Guide, Arithmetic Instructions, compute capability 8.0"
_LUO = "Luo et al., Benchmarking and Dissecting the Nvidia Hopper GPU Architecture, arXiv 2402.13499"

DEVICE = Device(
    name="A100 SXM4 80GB",
    targets=("sm_80",),
    cards=("NVIDIA A100-SXM4-80GB",),
    multiprocessors=Figure(108, _PAPER),
    schedulers=4,
    clock=Figure(1410, _PAPER),
    rates=Rates(
        issue=Figure(128, f"{_PAPER}: four schedulers, one instruction of 32 lanes a clock each"),
        fma=Figure(64, _GUIDE),
        alu=Figure(64, _GUIDE),
        imad=Figure(64, _GUIDE),
        half=Figure(128, f"{_GUIDE}: 256 results of two lanes"),
        fp64=Figure(32, _GUIDE),
        special=Figure(16, _GUIDE),
        lsu=Figure(32, f"{_PAPER}: 32 units that load and store"),
    ),
    matrix=Matrix(
        f16=Figure(1024, f"{_PAPER}: 312 TFLOP/s, dense"),
        tf32=Figure(512, f"{_PAPER}: 156 TFLOP/s, dense"),
        f8=UNKNOWN,
        i8=Figure(2048, f"{_PAPER}: 624 TOP/s, dense"),
        f64=Figure(64, f"{_PAPER}: 19.5 TFLOP/s"),
        clock=Figure(1410, _PAPER),
        sync=Figure(1, f"{_PAPER}: instructions of one warp are all there are"),
    ),
    bandwidth=Bandwidth(
        dram=Figure(2.039e12, _SHEET),
        l2=Figure(5120, _PAPER),
        l1=Figure(128, "CUDA C++ Best Practices Guide: a line of 128 bytes"),
        shared=Figure(128, "CUDA C++ Programming Guide, Shared Memory: 32 banks of 32 bits a clock"),
    ),
    latency=Latency(
        fixed=Figure(4, f"{_LUO}; the stalls that ptxas writes"),
        shared=Figure(29, _LUO),
        l1=Figure(38, _LUO),
        l2=Figure(262, _LUO),
        dram=Figure(466, _LUO),
        special=Figure(18, "assumed"),
        shuffle=Figure(24, "assumed"),
        matrix=Figure(33, f"{_LUO}: mma m16n8k16"),
        fp64=Figure(8, "assumed"),
        constant=Figure(30, "assumed"),
        barrier=Figure(20, "assumed"),
    ),
    cache=Figure(40 << 20, f"{_PAPER}: 40 MB"),
)
