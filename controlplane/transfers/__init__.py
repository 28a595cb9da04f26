"""Datasources and connections that change teams."""
