"""Helpers without models: the error base, the clock, ids."""
