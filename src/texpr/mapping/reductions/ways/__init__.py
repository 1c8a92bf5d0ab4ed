"""The ways to make a parallel reduction explicit, one file each: `WAY` says for which it is, and what becomes of them."""
