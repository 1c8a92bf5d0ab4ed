"""Whether two schedules are the same iteration: two graphs in; yes by a theorem or isl, or a counter-example, out."""
