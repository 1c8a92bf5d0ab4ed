"""The intermediate forms: `program` (what is computed), `steps` (a mapped nest) and `kernel` (what a machine executes)."""
