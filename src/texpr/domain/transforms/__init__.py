"""The transforms, one file each: indices both ways, holes, what bounds imply."""
