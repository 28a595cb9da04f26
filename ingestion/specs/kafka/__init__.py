"""How Kafka and schema registries are reached: addresses, properties, logins, secrets."""
