"""Errors of a whole decoder. Errors of single records are in ``Decoded.unparseable``."""

from __future__ import annotations

from ingestion.errors import IngestionError


class DecodeError(IngestionError):
    """The decoder can't do its work."""


class UnusableSchema(DecodeError):
    """The spec's dataSchema or inputFormat can't be compiled (a time pattern, an Avro schema): it has to be mended."""

    permanent = True


class TooSlow(DecodeError):
    """The spec takes too long on such records: the same would come of it again. Nothing was decided."""

    permanent = True


class TooWide(DecodeError):
    """These records together have more fields than one table should: decode, and keep, smaller parts of them apart.

    No single record is too wide. Nothing was decided.
    """


class DecoderBroken(DecodeError):
    """Even a known good record is not decoded: the fault is the decoder's, not the records'. Nothing was decided."""


class RegistryUnreachable(DecodeError):
    """The schema registry does not answer, or refuses to: nothing can be said of the records. Decode them again later.

    ``permanent``: it answered, and does not take the spec's login.
    The message names the registry and what it did; never what it wrote, which may be another service's.
    """
