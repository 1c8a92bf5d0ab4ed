"""Descriptions of machines as records: levels, memories, targets, instructions. To add one is to add a file or a record."""
