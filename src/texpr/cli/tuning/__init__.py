"""What `texpr tune` does beside its options: the parts of a search, and the measurement that workers run."""
