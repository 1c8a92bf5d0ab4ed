"""H200 SXM: an H100 with more and faster memory."""

from texpr.isa.devices import h100
from texpr.isa.speed import Figure
from texpr.support.record import replace

_SHEET = "NVIDIA H200 Tensor Core GPU, data sheet"

DEVICE = replace(
    h100.DEVICE,
    name="H200 SXM",
    targets=(),
    cards=("NVIDIA H200",),
    cache=Figure(60 << 20, "what the driver says of a device (cudaDeviceProp)"),
    bandwidth=replace(
        h100.DEVICE.bandwidth,
        dram=Figure(4.8e12, f"{_SHEET}: 4.8 TB/s, six stacks of HBM3e"),
        l2=Figure(6144, "in proportion to its 60 MB, for 5120 of 50 MB; 5217 were measured (bench/results/times.json)"),
    ),
)
