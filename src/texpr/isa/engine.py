"""The engine that copies runs and boxes between global and shared memory (PTX ISA, "Asynchronous copy", "Tensors")."""

from __future__ import annotations

CHUNK = 16
"""Bytes of the least that is copied: addresses and sizes are multiples of it (PTX ISA, "cp.async.bulk"), and swizzles move it
as a whole (ibid., "Swizzling Modes")."""

LINE = 128
"""Bytes of a line of all banks of shared memory, of which tiles begin at a multiple and by whose number swizzles move chunks
(ibid.)."""
