"""A plan's kernels as CUDA, and the device header they are written against."""
