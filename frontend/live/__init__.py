"""Live pages: one stream of events for each open page, from one subscription of the process.

``topics`` says what an event concerns and who may hear it; ``hub`` hands what Valkey tells to the streams; ``stream``
is what one page is sent. See docs/architecture.md, *How a page becomes live*.
"""
