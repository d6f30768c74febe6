"""A transformer whose FFNs are MoE layers, trained here on real tasks."""
