"""Live pages: one stream of events for each open page, from one subscription of the process.

``topics`` says what an event concerns and who may hear it; ``hub`` hands what Valkey tells to the audiences; an
``audience`` is told at once, by the ``stream`` of each page; ``shared_parts`` makes once what many pages then ask for.
See docs/architecture.md, *Path of a live change*.
"""
