"""How records and files are written."""
