"""Options of the JVMs that tests start, but for tools that run for a moment."""

# What a JVM would compile well, tests do not run for long: Kafka takes half of the processor time until it answers.
# Memory in large pages: half as many page faults. Where those are slow, Kafka answers a tenth to a third sooner.
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:+UseTransparentHugePages"
