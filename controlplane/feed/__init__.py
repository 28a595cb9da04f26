"""Publishes by number, and the manifest."""
