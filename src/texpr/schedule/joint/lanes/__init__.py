"""What lanes hold of a tile that instructions work on, part by part and in tensor memory, and how they store it."""
