"""The sampler's process: ``python -m ingestion.task.sampler``. It decodes as the indexers do, and stores nothing."""
