"""Buffers that hold a part of another one: accesses in; the region that they touch, and loops that copy it, out."""
