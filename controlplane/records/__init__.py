"""Records, looked up in Kafka and in segments."""
