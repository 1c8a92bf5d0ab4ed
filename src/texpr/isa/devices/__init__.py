"""One file a device, each binding `DEVICE`: how fast the machines are that targets stand for."""
