"""The publish transaction: fence, claims, settled ranges, receipts."""
