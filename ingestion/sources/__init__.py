"""Where records come from, and how each of them ends once.

**Exactly once, and who does what for it.** A source promises *at least once* alone: what it has handed out and nobody
has settled comes again. That it ends *once* is the publish transaction's work: it takes rows and offsets together, or
neither, and refuses offsets that have ended before. So a crash between any two steps costs a delivery and nothing else:

1. ``poll``: records leave the source. It remembers nothing of them that matters; a process may die here.
2. Decode, and upload segments that no row names yet.
3. Publish: rows and offsets become true in one transaction. This alone decides.
4. Tell the source, so that it does not hand the same out again. When this is lost, step 3 refuses the second try.

**The two kinds** differ in who remembers what has ended, and so in what step 4 is:

- ``LeasedSource``: the other side lends records for so long, and takes them back when nothing is heard; a share group
  is one, and so are kept records and holes. Step 4 is ``acknowledge``, after the publish and never before; what can't
  be settled in time is given up by ``lapse``. A record that comes again although it has ended is a *duplicate*: the
  publish says so, and it is acknowledged like the others. Every batch is published at once
  (``task.immediate_publisher``).
- ``StoredOffsetSource``: the metadata store keeps one number for each partition, the next offset, and the publish
  itself moves it from where the batch began to where it ends, or is refused. So step 3 holds step 4 already, and
  ``published`` only tells the source what is stored now. Offsets must be whole: what lies between two records is said
  to be empty. What is given up is read again by ``rewind``; what others have published or taken over is heard by
  ``lost``. Nobody waits for what is read, so batches gather (``task.buffering_publisher``).

Progress belongs to a topic's id, not to its name: what was read of a topic that is gone is never published as another's
(``TopicChanged``).

A new source is a subclass of one of the two kinds; one that reads a topic runs the contract of its kind, which is
``tests/contracts/source_contracts.py``.
"""
