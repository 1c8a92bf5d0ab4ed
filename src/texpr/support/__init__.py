"""Spans, diagnostics, error codes and slow imports: what every room may use."""
