"""Files to segments, in steps that a Spark task or none may run. Knows no Kafka, no Spark and no Django.

``files`` finds and opens them, ``splits`` deals them out, ``reading`` decodes a split and hands its rows on in chunks
of one segment interval each, ``bins`` deals out the intervals, ``writing`` makes segments of a bin's chunks;
``rewrite_interval`` does all of it in one process, for one interval of segments. Each step does the same when it is
done again, but for the names of the files that it writes: what nobody registers is an orphan.
"""
