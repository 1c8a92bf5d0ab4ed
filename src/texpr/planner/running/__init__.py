"""Running values: sizes of chunks, and loops in order outside of all nests."""
