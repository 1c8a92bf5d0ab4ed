"""Printers of kernels as source text. They make no decisions: all choices are in the plan."""
