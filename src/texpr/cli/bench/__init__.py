"""What `texpr bench` does beside its options: sizes to go through, references, times, a table and a chart."""
