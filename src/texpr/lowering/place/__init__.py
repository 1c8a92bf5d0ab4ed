"""Where buffers live: a nest, its steps and dependences in; registers, shared memory or workspace for each local out."""
