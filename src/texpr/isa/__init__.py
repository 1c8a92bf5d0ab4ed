"""What machines are made of, as records: levels, memories, targets, instructions. To add one is to add a file or a record."""
