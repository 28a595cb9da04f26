"""The data plane: reads Kafka, decodes, indexes and writes segments. Knows nothing of Django."""
