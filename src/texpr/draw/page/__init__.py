"""The building blocks of all pictures: shapes and text in, one SVG document out, independent of the subject."""
