"""Loading and calling what was built, from Python: on this CPU, on an emulated device, or on a CUDA device.

`load_cpu`, `load_emulated` and `load_cuda` make a `Kernel`, which takes NumPy arrays and, on a device, those of any library
that speaks DLPack.
"""

from texpr.runtime.array import DeviceArray
from texpr.runtime.kernel import Kernel
from texpr.runtime.load import load_cpu, load_cuda, load_emulated

__all__ = ["DeviceArray", "Kernel", "load_cpu", "load_cuda", "load_emulated"]
