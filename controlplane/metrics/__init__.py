"""What supervisors, datasources and pools are in, as metrics for Prometheus, read from the metadata store."""
