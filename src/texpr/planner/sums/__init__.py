"""Sums in parts: long ones that blocks share, running values in chunks. In: a loop; out: how its parts are cut."""
