"""The words of Druid's documents of ingestion, and how many recorded cases of each agree: tables of the docs.

A case counts for each word that stands in it. ``druid_tables`` writes them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, get_args

from ingestion.specs.errors import SpecError
from ingestion.specs.formats.file_format import CONTAINERS
from ingestion.specs.messages.sampler_spec import parse_sampler_spec
from tests.support.druid_agreement import RECORDED, Verdict, verdicts
from tests.support.druid_corpus import Case, cases

FUNCTIONS = """
cast coalesce if nvl like case_searched case_simple isnull notnull istrue isfalse nottrue notfalse isdistinctfrom
notdistinctfrom bloom_filter_test concat format lookup parse_long regexp_extract regexp_like regexp_replace
contains_string icontains_string replace substring right left strlen strpos trim ltrim rtrim lower upper reverse repeat
lpad rpad timestamp unix_timestamp timestamp_ceil timestamp_floor timestamp_shift timestamp_extract timestamp_parse
timestamp_format abs acos asin atan bitwiseAnd bitwiseComplement bitwiseConvertDoubleToLongBits
bitwiseConvertLongBitsToDouble bitwiseOr bitwiseShiftLeft bitwiseShiftRight bitwiseXor atan2 cbrt ceil copysign cos cosh
cot div exp expm1 floor getExponent hypot log log10 log1p max min nextafter nextUp pi pow remainder rint round
safe_divide scalb signum sin sinh sqrt tan tanh todegrees toradians ulp array array_length array_offset array_ordinal
array_contains array_overlap scalar_in_array array_offset_of array_ordinal_of array_prepend array_append array_concat
array_set_add array_set_add_all array_slice array_to_string string_to_array array_to_mv mv_to_array mv_harmonize_nulls
map cartesian_map filter fold cartesian_fold any all json_value json_query json_query_array json_object parse_json
try_parse_json to_json_string json_keys json_paths json_merge greatest least ipv4_match ipv4_parse ipv4_stringify
ipv6_match human_readable_binary_byte_format human_readable_decimal_byte_format human_readable_decimal_format
"""
FILTERS = """
selector equals null in inType bound range like regex search interval columnComparison expression
arrayContainsElement and or not true false istrue isfalse javascript extraction spatial
"""
AGGREGATORS = """
count longSum longMin longMax longFirst longLast longAny doubleSum doubleMin doubleMax doubleFirst doubleLast doubleAny
doubleMean floatSum floatMin floatMax floatFirst floatLast floatAny stringFirst stringLast stringAny filtered grouping
cardinality hyperUnique HLLSketchBuild HLLSketchMerge thetaSketch arrayOfDoublesSketch quantilesDoublesSketch
momentSketch momentSketchMerge tDigestSketch approxHistogram approxHistogramFold fixedBucketsHistogram variance
varianceFold bloom javascript
"""
FORMATS = "json csv tsv regex lines kafka avro_stream protobuf thrift javascript orc parquet avro_ocf"
KINDS = {"Function": FUNCTIONS, "Filter": FILTERS, "Aggregator": AGGREGATORS, "Input format": FORMATS}
_CALLED = re.compile(r"([A-Za-z_][A-Za-z_0-9]*)\s*\(")
_RECORD = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "string"}]}
_OF_FILES = [str(get_args(model.model_fields["type"].annotation)[0]) for model in CONTAINERS]
_NEEDS: dict[str, dict[str, Any]] = {  # what a word needs to be taken at all
    "kafka": {"valueFormat": {"type": "json"}},
    "avro_stream": {"avroBytesDecoder": {"type": "schema_inline", "schema": _RECORD}},
    "protobuf": {"protoBytesDecoder": {"type": "schema_registry", "url": "http://127.0.0.1:8081"}},
    "thrift": {"thriftClass": "R", "thriftIdl": "struct R {1: string a}"},
}


def words_tables() -> str:
    """One of each kind."""
    return "\n\n".join(_table(kind) for kind in KINDS)


def _table(kind: str) -> str:
    counts = _counted(kind)
    lines = [f"| {kind} | Cases | |", "|---|---:|---|"]
    return "\n".join([*lines, *(f"| `{w}` | {of.total()} | {_said(kind, w, of)} |" for w, of in counts.items())])


def _counted(kind: str) -> dict[str, Counter[str]]:
    counts: dict[str, Counter[str]] = {word: Counter() for word in KINDS[kind].split()}
    known = {word.lower(): word for word in counts}
    for case in cases():
        for word in {known[w.lower()] for w in _words_of(kind, case) if w.lower() in known}:
            counts[word][_found(case)] += 1
    return counts


def _found(case: Case) -> str:
    what = verdicts()[case.section, case.name]
    return _BOTH if what == "same" and RECORDED[case.section][case.name] == "refused" else what


def _words_of(kind: str, case: Case) -> set[str]:
    spec = case.body["spec"]
    schema = spec["dataSchema"]
    transforms = schema.get("transformSpec") or {}
    if kind == "Function":
        return set(_CALLED.findall(" ".join(str(t.get("expression", "")) for t in transforms.get("transforms") or [])))
    if kind == "Filter":
        return set(_types(transforms.get("filter")))
    if kind == "Aggregator":
        return {w for metric in schema.get("metricsSpec") or [] for w in _aggregators(metric)}
    return {str((spec["ioConfig"].get("inputFormat") or {}).get("type"))}


def _types(node: Any) -> Iterator[str]:
    """Of a filter and those inside it."""
    if isinstance(node, dict):
        if isinstance(node.get("type"), str):
            yield node["type"]
        for name in ("field", "fields", "filter"):
            yield from _types(node.get(name))
    elif isinstance(node, list):
        for one in node:
            yield from _types(one)


def _aggregators(metric: dict[str, Any]) -> Iterator[str]:
    yield str(metric.get("type"))
    if isinstance(metric.get("aggregator"), dict):
        yield from _aggregators(metric["aggregator"])


def _said(kind: str, word: str, found: Counter[str]) -> str:
    """In words; of a word without a case, whether it is taken."""
    if not found:
        of_files = kind == "Input format" and word in _OF_FILES
        return (
            "as documented"
            if _is_taken(kind, word)
            else "refused; of batch tasks, as documented"
            if of_files
            else "refused"
        )
    if found["refused"] == found.total():
        return "refused"
    if found[_BOTH] == found.total():
        return _BOTH
    return "; ".join(["same", *(f"{words}: {found[v]}" for v, words in _REST.items() if found[v])])


_BOTH = "refused, as by Druid"
_REST: dict[Verdict, str] = {
    "told": "fail here",
    "refused": "refused",
    "alone": "taken here alone",
    "other": "mean something else",
}


def _is_taken(kind: str, word: str) -> bool:
    """Whether a body with the least that it needs can be read."""
    body: dict[str, Any] = {
        "type": "kafka",
        "spec": {
            "dataSchema": {"dataSource": "d", "timestampSpec": {"column": "t"}, "dimensionsSpec": {}},
            "ioConfig": {"type": "kafka", "topic": "t", "consumerProperties": {"bootstrap.servers": "b:1"}},
        },
    }
    if kind == "Input format":
        body["spec"]["ioConfig"]["inputFormat"] = {"type": word, **_NEEDS.get(word, {})}
    else:
        body["spec"]["dataSchema"]["metricsSpec"] = [{"type": word, "name": "m", "fieldName": "f"}]
    try:
        parse_sampler_spec(body)
    except SpecError:
        return False
    return True
