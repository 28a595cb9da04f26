"""Druid's addresses and formats under /druid/, so that tools for Druid work unchanged.

Source: the API references of Apache Druid.
"""
