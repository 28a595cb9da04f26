"""Reads of segments: lists, sums and the timeline.

Those that take a datasource trust the caller to have got it from a selector that filters by user.
"""
