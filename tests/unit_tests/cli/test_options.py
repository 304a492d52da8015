import pytest

from graphrag_eval_lc.cli.options import Measures, say, tell
from graphrag_eval_lc.metrics.measures import MEASURES, parse_measure


def test_help_of_measures_names_all_that_there_are() -> None:
    (option,) = Measures.__metadata__
    named = option.help.partition(": ")[2].partition(", most of them")[0].split(", ")
    assert named == list(MEASURES)
    assert [parse_measure(name).name for name in named] == named


def test_what_is_said_is_text_on_either_stream(capsys: pytest.CaptureFixture[str]) -> None:
    say("urn:a:x [red] :smile: \x1b[2J\x9b")
    say("one\nline", keeps_lines=False)
    tell("Error: \x1b]0;t\x07 password=hunter22")
    output = capsys.readouterr()
    assert output.out == "urn:a:x [red] :smile: ␛[2J⟨U+009B⟩\none␊line\n"
    assert output.err == "Error: ␛]0;t␇ password=***\n"


def test_a_program_without_streams_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", None)
    monkeypatch.setattr("sys.stderr", None)
    say("nobody hears it")
    tell("nor this")
