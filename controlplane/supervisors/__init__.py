"""Supervisors: observe, decide, apply."""
