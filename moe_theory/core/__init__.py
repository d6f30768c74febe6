"""What every paper shares: systems, tasks, experts, gating, metrics, moments, keys and errors."""
