"""From a nest to its tree of steps: which threads run what, at which coordinates; the paths between two steps."""
