"""A stream that nothing written to it can break."""

import io
from pathlib import Path

import pytest

from graphrag_eval_lc.benchmark.progress import UnfailingStream


def test_text_is_handed_on() -> None:
    stream = io.StringIO()
    assert UnfailingStream(stream).write("ä\n") == 2
    assert stream.getvalue() == "ä\n"


def test_letters_that_the_encoding_lacks_are_escaped() -> None:
    raw = io.BytesIO()
    unfailing = UnfailingStream(io.TextIOWrapper(raw, encoding="ascii"))
    unfailing.write("a→\ud800")
    unfailing.flush()
    assert raw.getvalue() == b"a\\u2192\\ud800"


def test_a_closed_stream_is_written_without_an_error() -> None:
    stream = io.StringIO()
    stream.close()
    unfailing = UnfailingStream(stream)
    assert unfailing.write("lost") == 4
    unfailing.flush()
    assert not unfailing.isatty()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_written_without_an_error() -> None:
    with io.TextIOWrapper(io.FileIO("/dev/full", "w"), write_through=True) as stream:
        unfailing = UnfailingStream(stream)
        assert unfailing.write("lost\n") == 5
        unfailing.flush()
