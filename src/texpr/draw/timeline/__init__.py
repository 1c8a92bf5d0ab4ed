"""When things happen: the statements of a kernel in order (`statements`); a few steady turns by the model (`turns`)."""
