"""Shared by all papers: systems, tasks, experts, gating, metrics, moments, keys and errors."""

import time

IMPORT_TIME = time.time()  # a file that changes later was imported in another version
