"""Turns of a loop that differ from others."""
