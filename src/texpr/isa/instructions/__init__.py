"""One file a kind of instruction, each binding `INSTRUCTIONS`."""
