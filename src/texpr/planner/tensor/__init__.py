"""Products on tensor cores: what a nest multiplies (`product`), and the tiles of blocks and warps for it (`cores`)."""
