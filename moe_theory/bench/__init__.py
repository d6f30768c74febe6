"""How fast the rounds run here: the package's engine, other ways to run the same rounds, and what they cost."""
