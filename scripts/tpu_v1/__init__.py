"""The TPU paper's workloads and products on the preset ``tpu_v1``, by the cycle model."""
