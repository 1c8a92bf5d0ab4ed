"""What holes of a buffer must hold: graphs of a buffer and its consumers in, weak or strong correctness out."""
