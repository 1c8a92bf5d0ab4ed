"""A model of the machine: how fast a kernel can be at most, read from its plan, and from its machine code."""
