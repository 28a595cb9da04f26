"""The data plane's way to the control plane: HTTP with the task's token, and an in-memory twin for tests and trials."""
