"""Emission of ordered steps as statements of a kernel, without decisions that other passes depend on."""
