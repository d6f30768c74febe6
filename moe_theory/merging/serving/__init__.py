"""Ways to serve a K-expert MoE, merged or routed by token, example or task, and their costs."""
