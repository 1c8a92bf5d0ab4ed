"""Rows whose phases are sums over the same iterations, in one form, which a checker reads and a directive makes."""
