"""Kernels of others, written here in their languages: each file makes machine code of them, in an environment of its own."""
