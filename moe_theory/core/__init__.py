"""Shared by all papers: systems, tasks, experts, gating, metrics, moments, keys and errors."""

import time

IMPORT_TIME = (
    time.time()
)  # `moe_theory` imports this module first, so files that change later are not the imported ones
