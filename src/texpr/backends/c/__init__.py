"""Shared by the printers: C text of indices, values, names and argument checks, and the numeric headers."""
