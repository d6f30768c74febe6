"""Shared by all papers: systems, tasks, experts, gating, metrics, moments, keys and errors."""

import time

IMPORT_TIME = time.time()  # `moe_theory` imports this first. Files that change later are not what was imported.
