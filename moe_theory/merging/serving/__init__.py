"""Ways to serve a K-expert MoE, merged into one expert or routed by token, example or task, and their costs."""
