"""The figures of the documentation on IterDomains, drawn by the product's own code; tests redraw them and compare."""
