"""The ways to make a parallel reduction explicit, one file each: `WAY` says when it applies, and what it produces."""
