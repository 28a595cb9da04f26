"""The control plane: decides and records. Of ingestion/ it imports only the specs."""
