"""What a record becomes: the dataSchema and what stands in it."""
