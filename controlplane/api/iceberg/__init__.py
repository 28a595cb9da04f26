"""The read-only Iceberg REST catalog."""
