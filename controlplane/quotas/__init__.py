"""What teams may use at most."""
