"""The algebra of layouts: layouts in, layouts out; each operation is defined in the theory."""
