"""Integer sets and relations, decided by isl. The only room that imports islpy.

`formula` states constraints over index expressions, `sets` and `maps` hold their solutions, `linear` flattens expressions to
rows of integers, and `raw` is the interface to the library: its context, its numbers and its operation limit.
"""
