"""The two intermediate forms: `program` (what is computed) and `kernel` (what a machine runs)."""
