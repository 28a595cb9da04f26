"""``headgate``: a datasource's publishes as a stream, each once and in order, and its files as a batch."""
