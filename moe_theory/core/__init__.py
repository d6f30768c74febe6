"""Shared by all papers: systems, tasks, experts, gating, metrics, moments, keys and errors."""
