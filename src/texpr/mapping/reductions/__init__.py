"""Parallel reductions made explicit: a program with `reduce` in, one whose parallel loops have disjoint writes out."""
