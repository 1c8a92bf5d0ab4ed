"""Copies by engines in schedules: a region in; boxes, pixels, rows or runs that the hardware can copy out, or a refusal."""
