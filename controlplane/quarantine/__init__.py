"""Records that could not be read, and their replays."""
