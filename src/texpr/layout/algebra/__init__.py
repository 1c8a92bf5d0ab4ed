"""The algebra of layouts: layouts in, layouts out, each operation by its definition in the theory."""
