"""Where the functions of an artifact run, as far as its texts for C, C++ and Rust say it."""

from __future__ import annotations

from texpr.support.record import Record


class Platform(Record):
    """`name`: that of a backend. `device`: arrays are in a device's memory, and calls take a stream of it; otherwise they are
    in the host's. `openmp`: the sources are compiled with OpenMP."""

    name: str
    device: bool
    openmp: bool


CPU = Platform("cpu", device=False, openmp=True)
CUDA = Platform("cuda", device=True, openmp=False)
