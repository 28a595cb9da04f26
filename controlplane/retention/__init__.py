"""What is kept, and what goes: marking segments unused and used again, deleting their files."""
