"""SQL over the segments in use: what a user may read, which files that takes, and the processes that read them."""
