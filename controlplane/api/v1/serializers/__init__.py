"""The forms of /api/v1/ answers and bodies, by noun."""
