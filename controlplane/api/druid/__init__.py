"""Druid's own addresses and forms, under /druid/indexer/v1/: tools made for Druid's Overlord work unchanged.

Source: the Tasks and Supervisor API references of Apache Druid.
"""
