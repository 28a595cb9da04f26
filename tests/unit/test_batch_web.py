"""Files that a batch task reads of the web: from where the address policy allows, and no further."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ingestion.batch.errors import InputChanged, InputRefused, InputUnreachable
from ingestion.batch.inputs import Inputs
from ingestion.specs.errors import SpecError
from ingestion.specs.inputs.input_source import HttpInputSource
from ingestion.specs.kafka.addresses import AddressPolicy
from ingestion.specs.messages.batch_protocol import Reachable
from tests.support.batch_run import CSV, JSON, Run, a_table, is_same, spec_of

ROWS = a_table(500)


class Web:
    """A server on a loopback port: path → status, headers, body."""

    def __init__(self) -> None:
        self.answers: dict[str, tuple[int, dict[str, str], bytes]] = {}
        self.asked: list[str] = []
        web = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                web.asked.append(self.path)
                status, headers, body = web.answers.get(self.path, (404, {}, b""))
                self.send_response(status)
                for name, value in {"Content-Length": str(len(body)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                """Nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    def has(self, path: str, body: bytes, status: int = 200, **headers: str) -> str:
        self.answers[path] = (status, headers, body)
        return self.url(path)


@pytest.fixture
def web() -> Iterator[Web]:
    made = Web()
    yield made
    made.server.shutdown()
    made.server.server_close()


def reachable(allowed: str = "127.0.0.1/32") -> Reachable:
    return Reachable(address_policy=AddressPolicy.of([allowed] if allowed else [], [], ["1024-65535"]))


def run(tmp_path: Path, form: dict[str, Any], *uris: str, allowed: str = "127.0.0.1/32") -> Run:
    spec = spec_of({"type": "http", "uris": list(uris)}, form)
    return Run(spec, tmp_path, reachable=reachable(allowed))


def test_files_of_the_web_are_read_whole_each_by_a_task_of_its_own(tmp_path: Path, web: Web) -> None:
    half = ROWS.iloc[:200].to_csv(index=False).encode()
    other = gzip.compress(ROWS.iloc[200:].to_csv(index=False).encode())
    found = run(tmp_path, CSV, web.has("/a.csv?x=1", half), web.has("/b.csv.gz", other))
    assert len(found.splits) == 2
    assert is_same(found.stored(tmp_path), ROWS)
    pq.write_table(pa.Table.from_pandas(ROWS, preserve_index=False), tmp_path / "x", row_group_size=100)
    whole = run(tmp_path, {"type": "parquet"}, web.has("/c.parquet", (tmp_path / "x").read_bytes()))
    assert is_same(whole.stored(tmp_path / "other"), ROWS)


def test_a_redirect_is_followed_where_the_policy_allows_it_too(tmp_path: Path, web: Web) -> None:
    web.has("/there.csv", ROWS.to_csv(index=False).encode())
    web.has("/here.csv", b"", 302, Location="/there.csv")
    assert is_same(run(tmp_path, CSV, web.url("/here.csv")).stored(tmp_path), ROWS)
    web.has("/inside.csv", b"", 302, Location=web.url("/there.csv", "127.0.0.2"))
    asked = len(web.asked)
    with pytest.raises(InputRefused, match="is a loopback address"):
        run(tmp_path, CSV, web.url("/inside.csv"))
    assert web.asked[asked:] == ["/inside.csv"]
    web.has("/file.csv", b"", 301, Location="file:///etc/passwd")
    with pytest.raises(InputRefused, match="not http or https"):
        run(tmp_path, CSV, web.url("/file.csv"))
    web.has("/round.csv", b"", 307, Location="/round.csv")
    with pytest.raises(InputRefused, match="redirects more than 5 times"):
        run(tmp_path, CSV, web.url("/round.csv"))


def test_a_scheme_may_be_written_in_capitals(tmp_path: Path, web: Web) -> None:
    web.has("/there.csv", ROWS.to_csv(index=False).encode())
    web.has("/here.csv", b"", 302, Location=web.url("/there.csv").replace("http:", "HTTP:"))
    assert is_same(run(tmp_path, CSV, web.url("/here.csv").replace("http:", "HTTP:")).stored(tmp_path), ROWS)


def test_what_the_policy_denies_is_not_even_asked(tmp_path: Path, web: Web) -> None:
    with pytest.raises(InputRefused, match="is a loopback address: Headgate may not connect to it"):
        run(tmp_path, JSON, web.has("/x.json", b"{}"), allowed="")
    assert web.asked == []


@pytest.mark.parametrize(("status", "passes"), [(404, False), (403, False), (500, True), (429, True)])
def test_an_answer_that_is_no_file_says_whether_it_may_pass(
    tmp_path: Path, web: Web, status: int, passes: bool
) -> None:
    with pytest.raises(InputUnreachable if passes else InputRefused, match=f"the answer is {status}") as told:
        run(tmp_path, JSON, web.has("/x.json", b"no", status))
    assert told.value.permanent is not passes


def test_a_file_that_ends_too_early_or_is_too_large_is_not_taken(
    tmp_path: Path, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    web.answers["/short.json"] = (200, {"Content-Length": "1000"}, b'{"t": 1}\n')
    with pytest.raises(InputUnreachable, match=r"ended too early|no whole answer"):
        run(tmp_path, JSON, web.url("/short.json"))
    monkeypatch.setattr("ingestion.batch.http_files.MAX_BYTES", 100)
    with pytest.raises(InputRefused, match="has more than"):
        run(tmp_path, JSON, web.has("/large.json", b" " * 101))


@pytest.mark.parametrize(
    ("header", "before", "after"),
    [
        ("ETag", '"one"', '"two"'),
        ("Last-Modified", "Mon, 06 Jan 2025 00:00:00 GMT", "Mon, 06 Jan 2025 00:00:01 GMT"),
        ("Content-Length", "9", "8"),
    ],
)
def test_a_file_that_has_changed_since_it_was_found_is_not_read(web: Web, header: str, before: str, after: str) -> None:
    inputs = Inputs(reachable())
    address = web.has("/x.json", b"0123456789"[: int(before)] if before == "9" else b"{}", 200, **{header: before})
    [found] = inputs.list_files(HttpInputSource(type="http", uris=[address]))
    with inputs.open_input(found) as same:
        assert same.read() == web.answers["/x.json"][2]
    web.has("/x.json", b"0123456789"[: int(after)] if after == "8" else b"{}", 200, **{header: after})
    with pytest.raises(InputChanged, match=f"its {header} was {before}, and is {after}") as told:
        inputs.open_input(found).__enter__()
    assert told.value.permanent


def test_what_a_server_says_of_a_file_in_one_answer_alone_is_not_compared(web: Web) -> None:
    inputs = Inputs(reachable())
    [found] = inputs.list_files(HttpInputSource(type="http", uris=[web.has("/x.json", b"{}", ETag='"one"')]))
    web.has("/x.json", b"[]", 200, **{"Last-Modified": "Mon, 06 Jan 2025 00:00:00 GMT"})
    with inputs.open_input(found) as stream:
        assert stream.read() == b"[]"


def test_a_server_that_is_away_for_a_moment_is_asked_again_what_it_has(web: Web) -> None:
    address = web.has("/x.json", b"{}", 503)
    threading.Timer(0.1, lambda: web.has("/x.json", b"{}")).start()
    [found] = Inputs(reachable()).list_files(HttpInputSource(type="http", uris=[address]))
    assert dict(found.state_headers) == {"Content-Length": "2"}


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ({"uris": []}, "uris"),
        ({"uris": ["ftp://host/x"]}, "must be an address such as https"),
        ({"uris": ["http://user:word@host/x"]}, "no login"),
        ({"uris": ["http://host/x"], "httpAuthenticationUsername": "me"}, "stores no login"),
        ({"uris": ["http://host/x"], "httpAuthenticationPassword": {"type": "default", "password": "x"}}, "no login"),
        ({"uris": ["http://host/x"], "requestHeaders": {"a": "b"}}, "requestHeaders"),
    ],
)
def test_what_is_not_supported_of_the_web_is_refused_by_name(source: dict[str, Any], why: str) -> None:
    with pytest.raises(SpecError, match=why):
        spec_of({"type": "http", **source}, JSON)
