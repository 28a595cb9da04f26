"""Datasources as tables of an Iceberg catalog, built from the metadata store."""
