"""What of the world outside the readers of formats may use."""

from __future__ import annotations

from dataclasses import dataclass, field

from ingestion.decode.errors import UnusableSchema
from ingestion.decode.formats.registry import OpenRegistry, Registry
from ingestion.specs.formats.input_format import RegistryDecoder
from ingestion.specs.kafka.addresses import AddressPolicy


@dataclass(frozen=True)
class Access:
    """What formats may use beside the records: nothing, unless said."""

    open_registry: OpenRegistry | None = None
    schema_folder: str = ""  # the folder whose files a spec may name
    address_policy: AddressPolicy = field(default_factory=AddressPolicy)  # where a registry may be

    def registry(self, spec: RegistryDecoder) -> Registry:
        """A client for a spec's schema registry. Raises ``UnusableSchema``."""
        if self.open_registry is None:
            raise UnusableSchema("no schema registry can be asked from here")
        return self.open_registry(spec, self.address_policy)
