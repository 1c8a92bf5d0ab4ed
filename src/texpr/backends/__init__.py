"""Printers of kernels as text. They decide nothing: every choice is already in the plan."""
