"""For who runs an installation: what is wrong with it, and copies of its metadata store."""
