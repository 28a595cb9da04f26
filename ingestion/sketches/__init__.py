"""Sketches of Apache DataSketches, in the serialised form that Java's library, and so Druid, reads and writes.

``types`` has the columns that hold them, ``merging`` makes one of several and takes those that others wrote,
``single_values`` makes those of one value each, ``description`` says what a sketch tells.
"""
