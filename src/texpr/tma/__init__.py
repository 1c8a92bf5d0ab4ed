"""The tensor memory accelerator: what one copy does, its descriptor and rules, the copy that a graph asks for, correctness."""
