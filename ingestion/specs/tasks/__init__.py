"""Whole specs of supervisors and tasks, as they are submitted and stored."""
