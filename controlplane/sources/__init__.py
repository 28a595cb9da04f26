"""Readers of topics, and their events."""
