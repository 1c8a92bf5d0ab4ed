"""What all pictures are made of: shapes and text in, one SVG document out. Nothing here knows what is drawn."""
