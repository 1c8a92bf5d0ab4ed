"""Nests of loops as instructions that lanes do together: what matches, who holds what, and the program that says so."""
