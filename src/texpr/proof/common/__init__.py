"""Shared by both checkers: obligations before and after they are decided, and the comparison of two values."""
