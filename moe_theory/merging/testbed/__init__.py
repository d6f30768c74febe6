"""A transformer whose FFNs are MoE layers, trained here on real tasks, and a user's own MoE checkpoints."""
