"""From a nest to its tree of steps: threads, kinds of work, coordinates, and the paths between two steps."""
