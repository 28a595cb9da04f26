"""The .proto files that every schema may import without bringing them: those that Confluent's own client knows.

They are in the packages that are installed: Protobuf's well-known types, Google's common types, and Confluent's.
"""

from __future__ import annotations

import functools
import re
import runpy
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2  # type: ignore[import-untyped]

_GOOGLE = re.compile(r"google/(protobuf|type)/[a-z][a-z_]*\.proto")
_CONFLUENT = frozenset(("confluent/meta.proto", "confluent/type/decimal.proto", "confluent/type/variant.proto"))
_MOVED = {"confluent/types/decimal.proto": "confluent/type/decimal.proto"}  # where Confluent's client had it before


@functools.cache
def known_file(name: str) -> Any | None:
    """The file's ``FileDescriptorProto`` by the name that schemas import it by; None: it is none of these."""
    if name in _MOVED:
        new_name = _MOVED[name]
        return descriptor_pb2.FileDescriptorProto(
            name=name, dependency=[new_name], public_dependency=[0], syntax="proto3"
        )
    described = _load_descriptor(name)
    if described is None:
        return None
    file = descriptor_pb2.FileDescriptorProto()
    described.CopyToProto(file)
    return file


def _load_descriptor(name: str) -> Any | None:
    generated = f"{name.removesuffix('.proto')}_pb2"
    if name in _CONFLUENT:
        return _confluent_file(f"{generated}.py")
    if not _GOOGLE.fullmatch(name):
        return None
    try:
        return import_module(generated.replace("/", ".")).DESCRIPTOR
    except ModuleNotFoundError:
        return None


def _confluent_file(file: str) -> Any | None:
    """Run by itself: its package would import a client, with all that this needs, which executors do not have."""
    client = find_spec("confluent_kafka")
    folders = client.submodule_search_locations if client is not None else None
    path = Path(*(folders or ["."])[:1], "schema_registry", file)
    return runpy.run_path(str(path))["DESCRIPTOR"] if path.is_file() else None
