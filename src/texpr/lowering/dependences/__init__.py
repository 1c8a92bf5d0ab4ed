"""Which dependences join two threads: a nest and its steps in, dependences with their scope out. Read off the relation."""
