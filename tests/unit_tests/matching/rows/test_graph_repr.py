"""What Python shows of a driver's objects is read back; what it cannot be is refused or told to be cut."""

from typing import Any

import pytest

from graphrag_eval_lc.matching.outputs import CutOutput, UnreadableOutput
from graphrag_eval_lc.matching.rows import compare_sparql_results, read_sparql_results
from graphrag_eval_lc.matching.rows.graph_repr import graph_repr_value

NODE = "<Node element_id='4:a:0' labels=frozenset({'City'}) properties={'name': 'Os\\'lo'}>"


def moment(text: str) -> dict[str, str]:
    return {"type": "literal", "value": text, "datatype": "http://www.w3.org/2001/XMLSchema#dateTime"}


@pytest.mark.parametrize(
    ("shown", "value"),
    [
        ("neo4j.time.Date(2020, 1, 2)", "2020-01-02"),
        ("neo4j.time.DateTime(2020, 1, 2, 3, 4, 5, 6)", "2020-01-02T03:04:05.000000006"),
        ("neo4j.time.DateTime(2020, 1, 2, 3, 4, 5, 0, tzinfo=pytz.FixedOffset(-90))", "2020-01-02T03:04:05-01:30"),
        ("neo4j.time.DateTime(2020, 7, 2, 3, 4, 5, 0, tzinfo=zoneinfo.ZoneInfo(key='Europe/Oslo'))",
         "2020-07-02T03:04:05+02:00"),
        ("neo4j.time.DateTime(2020, 1, 2, 3, 4, 5, 0, tzinfo=<DstTzInfo 'Europe/Oslo' CET+1:00:00 STD>)",
         "2020-01-02T03:04:05+01:00"),
        ("neo4j.time.DateTime(2020, 1, 2, 3, 4, 5, 0, tzinfo=<UTC>)", "2020-01-02T03:04:05+00:00"),
        ("datetime.datetime(2020, 1, 2, 3, 4, tzinfo=datetime.timezone.utc)", moment("2020-01-02T03:04:00+00:00")),
        ("datetime.datetime(2020, 1, 2, 3, 4, tzinfo=datetime.timezone(datetime.timedelta(seconds=3600)))",
         moment("2020-01-02T03:04:00+01:00")),
        ("neo4j.time.Time(1, 2, 3, 4000)", "01:02:03.000004000"),
        ("UUID('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11')", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
        ("WGS84Point(1.0, 2.0)", {"srid": 4326, "x": 1.0, "y": 2.0}),
        ("frozenset({'b', 'a'})", ["a", "b"]),
        ("set()", []),
        ("{1, 2}", [1, 2]),
        ("(1,)", (1,)),
        (NODE, {"elementId": "4:a:0", "labels": ["City"], "properties": {"name": "Os'lo"}}),
    ],
)  # fmt: skip
def test_objects_are_read(shown: str, value: Any) -> None:
    assert graph_repr_value(f"[{shown}]") == [value]


def test_an_eager_result_is_read() -> None:
    text = f"EagerResult(records=[<Record n={NODE} count(m)=3>], summary=<neo4j.ResultSummary at 0x7f>, keys=['n'])"
    results = read_sparql_results(text)
    assert results.variables == ("n", "count(m)")


def test_a_list_of_nodes_is_a_column() -> None:
    assert read_sparql_results(f"[{NODE}, {NODE}]").variables == ("column 1",)


@pytest.mark.parametrize("cut", range(len("[{'n': <N"), len(f"[{{'n': {NODE}}}]")))
def test_what_is_cut_is_told(cut: int) -> None:
    text = f"[{{'n': {NODE}}}]"[:cut]
    if " " in text[len("[{'n': <Node") :] or text.endswith("<Node "):
        compared = compare_sparql_results([{"n": 1}], text)
        assert compared.outcome == "undecided", (text, compared.reason)


@pytest.mark.parametrize(
    "text",
    ["[<object object at 0x7f>]", "[neo4j.time.Date(1, 2)]", "[datetime.datetime(2020, 13, 45, tzinfo='a')]",
     "[os.system('ls')]",
     "[" * 100 + "]" * 100, "[{[]: 1}]", "[<Node labels=1>]"],
)  # fmt: skip
def test_what_is_not_known_is_refused(text: str) -> None:
    with pytest.raises(UnreadableOutput) as problem:
        graph_repr_value(text)
    assert not isinstance(problem.value, CutOutput)


@pytest.mark.parametrize(
    "shown",
    [
        "datetime.date(1960, 11, 1)",
        "datetime.datetime(2020, 1, 2, 3, 4, tzinfo=datetime.timezone.utc)",
        "datetime.time(1, 2, 3)",
        "datetime.timedelta(days=1, seconds=90)",
        "Decimal('1.50')",
        "NaT",
        "np.True_",
        "UUID('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11')",
        "datetime.datetime(2020, 7, 2, 3, 4, tzinfo=zoneinfo.ZoneInfo(key='Europe/Oslo'))",
    ],
)
@pytest.mark.parametrize("form", ["[{{'n': {}}}]", "[{{'n': {{'_LABEL': 'P', 'x': {}}}}}]", "[{{'n': [{}]}}]"])
def test_a_value_means_the_same_beside_the_objects_of_the_driver(shown: str, form: str) -> None:
    plain = form.format(shown)
    beside = (
        plain.replace("}]", ", 's': set()}]", 1) if form.startswith("[{{'n': {{") else plain[:-2] + ", 's': set()}]"
    )
    compared = compare_sparql_results(plain, beside, ["n"])
    assert compared.score == 1.0, compared.reason


def test_a_date_of_a_node_equals_its_text() -> None:
    shown = "[{'s': {'_ID': {'offset': 0, 'table': 0}, '_LABEL': 'Town', 'since': datetime.date(1960, 11, 1)}}]"
    assert compare_sparql_results([{"s": {"since": "1960-11-01"}}], shown).score == 1.0
    assert compare_sparql_results([{"s": {"since": "1960-11-02"}}], shown).score == 0.0


def test_records_with_times_and_decimals_equal_their_json() -> None:
    shown = "[<Record d=neo4j.time.Date(2020, 1, 1) n=Decimal('1.50')>]"
    assert compare_sparql_results([{"d": "2020-01-01", "n": 1.5}], shown).score == 1.0
    assert compare_sparql_results([{"d": "2020-01-01", "n": 1.6}], shown).score == 0.0


TWO_DAYS = {"type": "literal", "value": "P2D", "datatype": "http://www.w3.org/2001/XMLSchema#dayTimeDuration"}


@pytest.mark.parametrize(
    ("shown", "value"),
    [
        ("[<Record d={}>]", [{"d": TWO_DAYS}]),
        ("[{{'d': {{{}}}}}]", [{"d": [TWO_DAYS]}]),
        ("[{{'d': frozenset({{{}}})}}]", [{"d": [TWO_DAYS]}]),
        ("[{{'d': [{}]}}]", [{"d": [TWO_DAYS]}]),
    ],
)
def test_a_duration_of_python_has_its_type_wherever_it_stands(shown: str, value: object) -> None:
    assert graph_repr_value(shown.format("datetime.timedelta(days=2)")) == value


@pytest.mark.parametrize("shown", ["[<Record z={}>]", "[{{'z': {{{}}}}}]", "[{{'z': [{}]}}]"])
def test_a_zone_alone_is_no_value(shown: str) -> None:
    with pytest.raises(UnreadableOutput, match="time zone alone"):
        graph_repr_value(shown.format("datetime.timezone.utc"))


def test_a_name_that_only_begins_as_a_constant_is_refused() -> None:
    with pytest.raises(UnreadableOutput):
        graph_repr_value("[{'a': NaTional, 's': set()}]")


@pytest.mark.parametrize("price", ["{}", "[{}]", "{{'_LABEL': 'Sale', 'price': {}}}"])
@pytest.mark.parametrize("beside", ["None", "set()"])
def test_decimals_inside_values_are_numbers_with_or_without_their_type(price: str, beside: str) -> None:
    def shown(value: str) -> str:
        return f"[{{'n': {price.format(value)}, 'beside': {beside}}}]"

    for value in ("1.5", "'1.50'", "Decimal('1.5')"):
        assert compare_sparql_results(shown(value), shown("Decimal('1.50')"), ["n"]).score == 1.0
        assert compare_sparql_results(shown("Decimal('1.50')"), shown(value), ["n"]).score == 1.0
        assert compare_sparql_results(shown(value), shown("Decimal('1.51')"), ["n"]).score == 0.0


def test_a_datatype_that_is_no_text_is_none() -> None:
    rows = [{"n": {"x": {"type": "literal", "value": "5", "datatype": ["decimal"]}}}]
    assert compare_sparql_results(rows, rows).score == 1.0
