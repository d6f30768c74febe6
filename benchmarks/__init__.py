"""Costs of the library, and what breaks it."""
