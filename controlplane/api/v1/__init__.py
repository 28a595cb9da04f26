"""Our own REST interface, under /api/v1/."""
