"""One file a target, each binding `TARGET`."""
