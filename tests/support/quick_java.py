"""Options of every JVM of the tests."""

# What a JVM would compile well, tests do not run for long: Kafka takes half of the processor time until it answers.
# Memory in large pages: half as many page faults, and Kafka answers a tenth to a third sooner.
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:+UseTransparentHugePages"
