"""Lowering of a mapped program to kernels: places of buffers, barriers, guards, reductions over threads."""
