"""Costs of the library, and what breaks it; a package by this file, since pyarrow 17.0 installs one of this name."""
