"""Where files of a batch task may lie: in folders and storages that the site has named; by its address policy."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings

from controlplane.common.errors import invalid_spec
from controlplane.connections import transport
from controlplane.connections.probe_report import Clock, Failed
from ingestion.specs.errors import SpecError
from ingestion.specs.inputs.input_source import (
    FilesSource,
    HttpInputSource,
    InlineInputSource,
    ObjectsInputSource,
    is_below,
    leaf_sources,
)
from ingestion.specs.tasks.batch import BatchTaskSpec
from ingestion.specs.tasks.ingestion_spec import issues_as_written

_FOLDERS, _LOCATIONS = "HEADGATE_LOCAL_INPUT_FOLDERS", "HEADGATE_INPUT_LOCATIONS"
_SWITCHED_OFF = "can't be read here: a site administrator must name"
_MAX_HOSTS = 16  # that are asked for before a task is taken; its reading judges all
_RESOLVED_S = 10.0


def check_places(document: Any, spec: BatchTaskSpec) -> None:
    """Raise ``InvalidInput`` for files that lie elsewhere, by their names."""
    faults: list[tuple[list[str | int], str]] = []
    for place, source in leaf_sources(spec.spec.ioConfig.inputSource):
        fault = "" if isinstance(source, InlineInputSource) else _fault(source)
        if fault:
            faults.append((["ioConfig", "inputSource", *place], fault))
    if faults:
        raise invalid_spec(SpecError(issues_as_written(document, faults)))


def _fault(source: FilesSource) -> str:
    if isinstance(source, HttpInputSource):
        return _web_fault(source)
    if isinstance(source, ObjectsInputSource):
        if not settings.INPUT_LOCATIONS:
            return f"objects {_SWITCHED_OFF} the locations in {_LOCATIONS}"
        names = [*source.named_one_by_one, *source.prefixes]
        outside = [n for n in names if not any(is_below(n, location) for location in settings.INPUT_LOCATIONS)]
        return f"{outside[0]} is not below the locations of {_LOCATIONS}" if outside else ""
    if not settings.LOCAL_INPUT_FOLDERS:
        return f"files {_SWITCHED_OFF} the folders in {_FOLDERS}"
    outside = [
        n for n in source.named if not any(PurePosixPath(n).is_relative_to(f) for f in settings.LOCAL_INPUT_FOLDERS)
    ]
    return f"{outside[0]} is not below the folders of {_FOLDERS}" if outside else ""


def _web_fault(source: HttpInputSource) -> str:
    """A name that is not known just now is no fault: the task asks again."""
    clock = Clock(_RESOLVED_S)
    servers = dict.fromkeys((urlsplit(uri).hostname or "", _port(uri)) for uri in source.uris)
    for host, port in list(servers)[:_MAX_HOSTS]:
        try:
            transport.resolve(host, port, clock)
        except Failed as failed:
            if failed.cause == "address":
                return failed.message.rstrip(".")
    return ""


def _port(uri: str) -> int:
    parts = urlsplit(uri)
    return parts.port or (443 if parts.scheme == "https" else 80)
