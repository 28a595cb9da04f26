"""Headgate's own REST interface under /api/v1/."""
