"""From parallel bands to the levels of a machine: which loop becomes blocks, which threads, which stays sequential."""
