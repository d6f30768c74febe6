"""Claims of the edge-computing paper, each beside the right statement where it is wrong."""
