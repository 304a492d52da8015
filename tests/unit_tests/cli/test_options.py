from graphrag_eval_lc.cli.options import Measures
from graphrag_eval_lc.metrics.measures import MEASURES, parse_measure


def test_help_of_measures_names_all_that_there_are() -> None:
    (option,) = Measures.__metadata__
    named = option.help.partition(": ")[2].partition(", most of them")[0].split(", ")
    assert named == list(MEASURES)
    assert [parse_measure(name).name for name in named] == named
