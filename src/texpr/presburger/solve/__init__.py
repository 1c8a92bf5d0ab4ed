"""Own decisions on systems of comparisons, tried before isl: a formula in; a contradiction, a point or nothing out."""
