"""Spans, diagnostics, error codes and lazy imports, for use by every package."""
