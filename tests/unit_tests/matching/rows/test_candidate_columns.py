from graphrag_eval_lc.matching.rows.candidate_columns import ColumnClass, column_classes
from graphrag_eval_lc.matching.rows.encoding import Encoding
from graphrag_eval_lc.matching.rows.results import SparqlResults, TermColumn
from graphrag_eval_lc.matching.rows.tables import encoded_tables
from graphrag_eval_lc.matching.rows.xsd_numbers import Tolerances

FLOAT = ("literal", "http://www.w3.org/2001/XMLSchema#float", None)


def results(**columns: list[float]) -> SparqlResults:
    texts = {name: [f"{number:.3f}" for number in numbers] for name, numbers in columns.items()}
    row_count = len(next(iter(texts.values())))
    return SparqlResults({name: TermColumn(column, FLOAT) for name, column in texts.items()}, row_count)


def test_columns_of_one_chain_are_told_apart_by_how_near_their_numbers_are() -> None:
    steps = [1_000 + at * 0.009 for at in range(12)]
    low, high, all_of_them = steps[:4] * 3, steps[8:] * 3, steps
    reference = results(a=low, b=high, c=all_of_them)
    actual = results(p=all_of_them, q=high, r=low)
    tables = encoded_tables(reference, actual, "abc", Encoding(False, Tolerances.of(None)), all_columns=True)
    assert len(set(map(frozenset, tables[0].columns))) == 1
    for rows_as in ("set", "bag"):
        classes = column_classes(*tables, rows_as)  # type: ignore[arg-type]  # one of the ways that there are
        assert classes == [ColumnClass([0], [2]), ColumnClass([1], [1]), ColumnClass([2], [0])]
    shorter = results(p=all_of_them, q=high, r=high)
    tables = encoded_tables(reference, shorter, "abc", Encoding(False, Tolerances.of(None)), all_columns=True)
    assert column_classes(*tables, "set") is None
