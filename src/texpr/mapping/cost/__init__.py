"""The cost of a mapping: accesses and digits of threads in; sectors, conflicts and operations out. No choice is made here."""
