"""Ways to serve a K-expert MoE, which may be merged or routed by token, example or task, and their costs."""
