"""Dependences between threads: for a nest and its steps, the dependences with their scope, from the relation."""
