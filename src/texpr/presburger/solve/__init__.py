"""Decision procedures tried before isl: a formula in; a contradiction, a point or no answer out."""
