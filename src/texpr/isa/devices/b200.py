"""B200, as far as anything is published of it."""

from texpr.isa.speed import UNKNOWN, Bandwidth, Device, Figure, Latency, Matrix, Rates

_BRIEF = "NVIDIA Blackwell Architecture, technical brief (HGX B200, one GPU, dense)"
_GUIDE = "CUDA C++ Programming Guide, Arithmetic Instructions, compute capability 10.0"

DEVICE = Device(
    name="B200",
    targets=("sm_100a",),
    multiprocessors=Figure(148, "what the driver says of a device (cudaDeviceProp), as told by its users"),
    schedulers=4,
    clock=Figure(1965, "what nvidia-smi says of a device, as told by its users; in no data sheet"),
    rates=Rates(
        issue=Figure(128, "as of compute capability 9.0"),
        fma=Figure(128, _GUIDE),
        alu=Figure(64, _GUIDE),
        imad=Figure(64, _GUIDE),
        half=Figure(128, f"{_GUIDE}: 256 results of two lanes"),
        fp64=Figure(64, _GUIDE),
        special=Figure(16, _GUIDE),
        lsu=UNKNOWN,
    ),
    matrix=Matrix(
        f16=Figure(4096, f"{_BRIEF}: 2.25 PFLOP/s"),
        tf32=Figure(2048, f"{_BRIEF}: 1.1 PFLOP/s"),
        f8=Figure(8192, f"{_BRIEF}: 4.5 PFLOP/s"),
        i8=Figure(8192, f"{_BRIEF}: 4.5 POP/s"),
        f64=UNKNOWN,
        clock=Figure(1856, f"{_BRIEF}: 2.25 PFLOP/s by 148 multiprocessors of 4096 multiply-adds a clock"),
        sync=UNKNOWN,
    ),
    bandwidth=Bandwidth(
        dram=Figure(8e12, _BRIEF),
        l2=UNKNOWN,
        l1=UNKNOWN,
        shared=Figure(128, "CUDA C++ Programming Guide, Shared Memory: 32 banks of 32 bits a clock"),
    ),
    latency=Latency(
        fixed=Figure(4, "the stalls that ptxas writes"),
        shared=UNKNOWN,
        l1=UNKNOWN,
        l2=UNKNOWN,
        dram=UNKNOWN,
        special=UNKNOWN,
        shuffle=UNKNOWN,
        matrix=UNKNOWN,
        fp64=UNKNOWN,
        constant=UNKNOWN,
        barrier=UNKNOWN,
    ),
)
