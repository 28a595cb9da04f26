"""Filters for numbers, times, states and what came from outside."""
