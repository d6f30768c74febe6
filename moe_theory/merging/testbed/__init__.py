"""A transformer whose FFNs are MoE layers, trained here on real tasks, and MoE checkpoints of one's own."""
