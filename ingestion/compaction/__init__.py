"""Segments of one interval to fewer and larger ones. Knows no Kafka, no Spark and no Django.

``merge`` reads what a job names, sorts it as ingestion does, rolls it up where the job says so, and writes through the
same encoding; ``run`` does that and has the control plane replace the one by the other. Nothing is deleted here: files
that were written and never registered are orphans, those that were replaced stay for who reads them.
"""
