"""`make demo`: real data through the whole stack, and a report whose every count is checked."""
