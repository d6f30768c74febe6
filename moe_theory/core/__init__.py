"""Shared by all papers: systems, tasks, experts, gating, metrics, moments, keys and errors."""

import time

IMPORT_TIME = time.time()  # files that change later were not imported as they are
