"""Work of engines: for a marked step, its boxes, pixels, rows or runs, their tensor maps and holes; instructions of lanes."""
