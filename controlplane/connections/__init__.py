"""Kafka clusters as the control plane sees them, and secrets at rest."""
