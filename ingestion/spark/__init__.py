"""Spark applications: thin mains over the data plane."""
