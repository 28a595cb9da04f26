"""Inputs of a spec: sources, files, connections."""
