"""Quasi-affine expressions over integers: canonical, interned, and with floor semantics."""
