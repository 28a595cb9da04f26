"""Datasources: what a team ingests into."""
