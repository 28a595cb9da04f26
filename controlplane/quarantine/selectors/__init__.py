"""Reads of the quarantine: lists, filters, causes."""
