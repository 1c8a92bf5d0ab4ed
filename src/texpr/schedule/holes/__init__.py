"""Iterations that are none: which of them may compute all the same, on what, and who must not read what they leave."""
