"""The one indexing loop, its limits and counters."""
