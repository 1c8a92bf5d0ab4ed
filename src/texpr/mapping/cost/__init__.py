"""What a mapping costs: accesses and digits of threads in; sectors, conflicts and operations out. Nothing is chosen here."""
