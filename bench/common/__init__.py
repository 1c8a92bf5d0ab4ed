"""What the measurements share: timing, and results kept with where and when they were taken."""
