"""Placement of locals: for a nest, its steps and dependences, the registers, shared memory or workspace of each local."""
