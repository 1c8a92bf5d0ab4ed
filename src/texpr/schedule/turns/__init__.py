"""Loops whose turns overlap."""
