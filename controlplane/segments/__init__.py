"""Segments: files, intervals, columns, the timeline, and the use of deep storage."""
