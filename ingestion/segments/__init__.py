"""Rows to immutable, time-partitioned Parquet files in deep storage. Knows no Kafka and no Django.

``write_segments`` writes one file for each segment interval (more when one grows too long) of a batch and hands them
to a ``DeepStorage``; ``RowIndex`` does so with the rows of many batches, which it gathers. Nothing is registered here.
A file that was put but never registered is an orphan, to be deleted when it is old: nothing in this package deletes a
file from deep storage because of an error.
"""
