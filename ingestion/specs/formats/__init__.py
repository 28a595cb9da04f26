"""Input formats of records and files."""
