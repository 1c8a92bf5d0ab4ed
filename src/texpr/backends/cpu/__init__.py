"""A plan as stand-alone C++17 with OpenMP, and the header it is written against."""
