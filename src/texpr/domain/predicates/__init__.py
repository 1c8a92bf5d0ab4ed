"""Which comparisons exclude holes: a graph in; the comparisons that are needed, and the reason why each other is not, out."""
