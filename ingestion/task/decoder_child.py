"""The process behind the indexer's ``IsolatedDecoder``: the decoder's own, with a schema registry's client."""

from __future__ import annotations

import sys

from ingestion.decode.child_process import main
from ingestion.task.schema_registry import ConfluentRegistry

if __name__ == "__main__":
    sys.exit(main(ConfluentRegistry))
