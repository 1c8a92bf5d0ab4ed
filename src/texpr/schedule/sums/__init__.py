"""Sums whose parts get loops of their own: parts that memory holds, running values in chunks. In: a loop; out: loops."""
