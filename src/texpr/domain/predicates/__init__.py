"""Which comparisons keep holes out: a graph in; the comparisons that are needed, and why the others are not, out."""
