"""Loops over lanes that a CPU executes as vector operations, and the rows that such lanes read in successive iterations."""
