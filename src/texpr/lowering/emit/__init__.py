"""From ordered steps to statements of a kernel. Nothing is decided here that another pass has to know."""
