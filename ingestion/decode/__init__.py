"""Record bytes of any input format to Arrow through DuckDB. Knows no Kafka and no Django.

Two decoders with one face: ``JsonDecoder`` works in this process, ``IsolatedDecoder`` in a child process that a record
may kill. ``decode(payloads, window, envelope)`` returns a ``Decoded`` in which every payload ended in exactly one way;
a bad record never fails its batch. Neither is thread-safe: one decoder per thread.

What is decided here, and why, stands in the docstrings of ``json_decoder`` (records), ``columns``
(values), ``times`` (timestamps), ``filters`` and ``formats`` (what is not JSON).
"""
