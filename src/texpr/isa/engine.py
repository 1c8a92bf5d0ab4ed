"""The engine that copies runs and boxes between global and shared memory (PTX ISA, "Asynchronous copy", "Tensors")."""

from __future__ import annotations

CHUNK = 16
"""The granularity of a copy in bytes: addresses and sizes are multiples of it (PTX ISA, "cp.async.bulk"), and swizzles
permute chunks of it (ibid., "Swizzling Modes")."""

LINE = 128
"""The bytes of one line across all banks of shared memory: tiles are aligned to it, and swizzles permute chunks by its number
(ibid.)."""
