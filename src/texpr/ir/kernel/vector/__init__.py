"""Loops over lanes that a CPU runs as operations on vectors, and the rows that such lanes read one after the other."""
