"""``kafka-sharegroup``: a share group as a source of Spark, each record once in the micro-batches.

Readers poll all the time and write what they polled into the buffer location, durable before it is acknowledged. A
micro-batch is a range of these files. What the broker delivers again is known by its offset and dropped.
"""
