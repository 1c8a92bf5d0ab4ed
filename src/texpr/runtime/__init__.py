"""Loading and calling built functions from Python: on this CPU, on an emulated device, or on a CUDA device.

`load_cpu`, `load_emulated` and `load_cuda` make a `Kernel`, which accepts NumPy arrays and, on a device, those of any library
that supports DLPack. Imports are lazy: a build needs none of these names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from texpr.support.lazy import attributes

if TYPE_CHECKING:
    from texpr.runtime.array import DeviceArray as DeviceArray
    from texpr.runtime.array import HostArray as HostArray
    from texpr.runtime.kernel import Kernel as Kernel
    from texpr.runtime.load import load_cpu as load_cpu
    from texpr.runtime.load import load_cuda as load_cuda
    from texpr.runtime.load import load_emulated as load_emulated

_PUBLIC = {
    "DeviceArray": "texpr.runtime.array:DeviceArray",
    "HostArray": "texpr.runtime.array:HostArray",
    "Kernel": "texpr.runtime.kernel:Kernel",
    "load_cpu": "texpr.runtime.load:load_cpu",
    "load_cuda": "texpr.runtime.load:load_cuda",
    "load_emulated": "texpr.runtime.load:load_emulated",
}

__getattr__ = attributes(__name__, _PUBLIC)


def __dir__() -> list[str]:
    return list(_PUBLIC)
