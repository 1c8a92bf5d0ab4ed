"""What warps that have roles do for each other: slots are empty again (`roles`, `uses`), tiles are handed over (`relay`)."""
