"""Modulo schedules of a turn of tile operations: which begins when, how many turns late, and how long a turn takes at least."""
