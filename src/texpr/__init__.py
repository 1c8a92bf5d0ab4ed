"""texpr: an ahead-of-time compiler for GPU tensor programs."""
