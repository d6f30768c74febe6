"""A transformer whose FFNs are MoE layers, trained on real tasks."""
