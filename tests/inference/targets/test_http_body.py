"""Bodies of answers without their framing: however the reads cut them, the same content."""

from itertools import pairwise

import h11
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference.records import Trace
from inference.targets.http_body import BrokenBody, body_of, keeps_open
from inference.targets.openai_answer import AnswerReader


def response(*headers: tuple[str, str], status: int = 200) -> h11.Response:
    return h11.Response(status_code=status, headers=list(headers), http_version="1.1")


CHUNKED = response(("Transfer-Encoding", "chunked"))


@settings(max_examples=60, deadline=None)
@given(
    parts=st.lists(st.binary(min_size=1, max_size=40), max_size=6),
    cuts=st.lists(st.integers(0, 400), max_size=12),
    trailer=st.sampled_from([b"", b"X-Sum: 1\r\n"]),
)
def test_a_chunked_body_is_the_same_however_it_is_cut(
    parts: list[bytes], cuts: list[int], trailer: bytes
) -> None:
    wire = b"".join(b"%X; ext=1\r\n%b\r\n" % (len(part), part) for part in parts)
    wire += b"0\r\n" + trailer + b"\r\n" + b"HTTP"
    edges = sorted({0, len(wire), *(cut for cut in cuts if cut < len(wire))})
    body, got, ends = body_of(CHUNKED), b"", 0
    for begin, end in pairwise(edges):
        if ends:
            break
        content, complete = body.feed(wire[begin:end])
        got += content
        ends += complete
    assert (got, ends) == (b"".join(parts), 1)
    assert b"HTTP".startswith(body.extra)


@pytest.mark.parametrize("wire", [b"zz\r\n", b"3\r\nabcd\r\n", b"1" * 20_000, b"-1\r\n"])
def test_what_is_no_chunk_is_said(wire: bytes) -> None:
    with pytest.raises(BrokenBody):
        body_of(CHUNKED).feed(wire)


def test_other_framings_and_who_keeps_the_connection() -> None:
    assert body_of(response(("Content-Length", "3"))).feed(b"abcd") == (b"abc", True)
    assert body_of(response(status=204)).feed(b"") == (b"", True)
    assert body_of(response()).open_ended
    assert keeps_open(CHUNKED)
    assert not keeps_open(response(("Connection", "close")))


def test_after_done_content_does_not_count_and_an_error_does() -> None:
    trace = Trace("q")
    reader = AnswerReader(trace)
    token = b'data: {"choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": "stop"}]}\n\n'
    reader.feed(1, token + b"data: [DONE]\n\n" + token)
    reader.finish()
    assert (trace.text, len(trace.reads), trace.error) == ("a", 1, None)
    assert trace.server["stream"]["events_after_done"] == 1
    reader.feed(2, b'data: {"error": {"message": "too late"}}\n\n')
    assert trace.error == "too late"
