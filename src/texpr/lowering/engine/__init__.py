"""What copy engines move: a step marked for one in; its boxes, pixels, rows or runs, their maps and holes out."""
