"""What is asked about metrics that are sketches, for ``druid_corpus``: values of every kind, options, and rollup."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

VALUES = r"""null|""|"a"|"é😀"|"seven letters and more than sixteen bytes"|"7"|"-2.5"|"1e3"|" 7 "|"+5"|".5"|"5."|"7d"
"0x1F"|"0x1p3"|"NaN"|"Infinity"|"-Infinity"|"1e400"|"1,000"|"A"|"5 "|"true"|5|-5|0|2.5|5.0|1e10|0.0|-0.0|1e-300
9223372036854775807|-9223372036854775808|9223372036854775808|-9223372036854775809|99999999999999999999999|9007199254740993|true|false
["a","b"]|[1,2]|[null,"","x"]|[]|[["a"]]|[1.5,true,{"k":1.0}]|["a","a"]|{"k":1}|{}"""
BUILDS: list[dict[str, Any]] = [
    {"type": "HLLSketchBuild"},
    {"type": "HLLSketchBuild", "stringEncoding": "utf8"},
    {"type": "thetaSketch"},
    {"type": "quantilesDoublesSketch"},
]
OPTIONS: dict[str, list[dict[str, Any]]] = {
    "HLLSketchBuild": [
        *({"lgK": lg_k} for lg_k in (3, 4, 7, 21, 22, None)),
        *({"tgtHllType": kind} for kind in ("HLL_6", "HLL_8", "hll_8", "HLL_5")),
        *({"stringEncoding": encoding} for encoding in ("utf8", "UTF8", "UTF16LE", "latin1")),
        {"round": True, "shouldFinalize": False},
    ],
    "thetaSketch": [
        *({"size": size} for size in (0, -1, 8, 15, 16, 32, 4096, 67_108_864, 134_217_728)),
        {"shouldFinalize": False, "errorBoundsStdDev": 2},
    ],
    "quantilesDoublesSketch": [
        *({"k": k} for k in (0, 1, 2, 3, 32_768, 65_536)),
        {"maxStreamLength": 100},
        {"shouldFinalize": False},
    ],
}
HLL, THETA, QUANTILES = (
    "AgEHDAMIAgDhUv8P5RCeBg==",
    "AgMDAAAazJMCAAAAAACAP4V/QLaJx+U0F8EdUoUHAXs=",
    "AgMIGoAAAAABAAAAAAAAAAAAAAAAABRAAAAAAAAAFEAAAAAAAAAUQA==",
)
SKETCHES: list[Any] = [
    *(HLL, THETA, QUANTILES, HLL[:-1], HLL.rstrip("="), QUANTILES.rstrip("="), HLL + "\n"),
    *("AgEHDAMMAAA=", "AQMDAAAeAAA=", "AQMIHoAAAAA="),  # empty ones
    *("", None, "xx", "!!", "AAAA", 5, True, [HLL], {"k": 1}),
]
MERGES: list[dict[str, Any]] = [
    {"type": "HLLSketchMerge"},
    {"type": "HLLSketchMerge", "lgK": 8, "tgtHllType": "HLL_8"},
    {"type": "thetaSketch", "isInputThetaSketch": True},
    {"type": "quantilesDoublesSketch"},
]
_ROWS = [("x", "a"), ("x", "b"), ("y", 5), ("x", "a"), ("y", None), ("x", 5.5), ("z", None), ("x", ["b", "c"])]


def asked() -> Iterator[tuple[str, str, list[dict[str, Any]], bool]]:
    """Of each case its name, the records, the metrics, and whether rows are rolled up."""
    values = [text for line in VALUES.splitlines() for text in line.split("|")]
    for build in BUILDS:
        for text in values:
            yield _named(build, text), f'{{"t":0,"v":{text}}}', [_metric(build)], False
        yield _named(build, "no field"), '{"t":0}', [_metric(build)], False
    for kind, options in OPTIONS.items():
        for option in options:
            metric = {"type": kind, **option}
            yield _named(metric, "7"), '{"t":0,"v":"7"}', [_metric(metric)], False
    for merge in MERGES:
        for sketch in SKETCHES:
            name = _named({**merge, "of": "sketches"}, json.dumps(sketch))
            yield name, json.dumps({"t": 0, "v": sketch}), [_metric(merge)], False
    yield from _rolled()


def _rolled() -> Iterator[tuple[str, str, list[dict[str, Any]], bool]]:
    numbers = [(d, i if not isinstance(v, list) else None) for i, (d, v) in enumerate(_ROWS)]
    for build in BUILDS:
        rows = numbers if build["type"].startswith("quantiles") else _ROWS
        data = "\n".join(json.dumps({"t": 0, "d": d, "v": v}) for d, v in rows)
        yield _named(build, "rolled up"), data, [_metric(build)], True
        condition = {"type": "selector", "dimension": "d", "value": "x"}
        filtered = {"type": "filtered", "filter": condition, "aggregator": _metric(build)}
        yield _named(build, "filtered"), data, [filtered], True
        many = "\n".join(json.dumps({"t": 0, "d": "x", "v": i}) for i in range(100))
        yield _named(build, "rolled up, of a hundred"), many, [_metric(build)], True
    for merge, sketch in zip(MERGES[1:], (HLL, THETA, QUANTILES), strict=True):
        data = "\n".join(json.dumps({"t": 0, "d": "x", "v": v}) for v in (sketch, None, sketch))
        yield _named({**merge, "of": "sketches"}, "rolled up"), data, [_metric(merge)], True
    for kind in OPTIONS:
        yield f"{kind} without a field", '{"t":0,"v":5}', [{"type": kind, "name": "m"}], False


def _metric(options: dict[str, Any]) -> dict[str, Any]:
    return {"name": "m", "fieldName": "v", **options}


def _named(options: dict[str, Any], of: str) -> str:
    more = [f"{k} {json.dumps(v)}" for k, v in options.items() if k != "type"]
    return f"{' '.join([options['type'], *more])}: {of}"
