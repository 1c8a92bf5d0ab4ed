"""Buffers that stand for a part of another one: an access in; the region that it touches, and loops that copy it, out."""
