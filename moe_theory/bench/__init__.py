"""How fast the engine is here, and against other ways to run the same rounds."""
