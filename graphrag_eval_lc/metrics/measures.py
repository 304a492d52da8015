"""Measures of a ranking by their names in ir_measures, such as ``nDCG@10``."""

import re
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import NamedTuple

from graphrag_eval_lc.metrics.ranking import Relevant, checked_cutoff, ranked_hits


class MeasureDefinition(NamedTuple):
    """The declaration of a measure: its key in results and method of ``RankedHits``, its source and other names."""

    key: str
    source: str
    aliases: tuple[str, ...] = ()
    needs: str = ""  # in addition to relevant ids


_SETS = (
    "trec_eval; with groups AutoRAG; ragas' `IDBasedContextPrecision` and recall "
    "(`id_context_precision`, `id_context_recall`)"
)
_NDCG = "Järvelin and Kekäläinen 2002, as in trec_eval; with groups AutoRAG"
MEASURES: Mapping[str, MeasureDefinition] = {
    "P": MeasureDefinition("precision", _SETS, ("prec", "SetP")),
    "R": MeasureDefinition("recall", _SETS, ("SetR", "set recall")),
    "R_cap": MeasureDefinition("recall_capped", "graphrag-eval", ("capped recall",), ", k"),
    "F1": MeasureDefinition("f1", _SETS, ("f1 score", "SetF")),
    "RR": MeasureDefinition("reciprocal_rank", "trec_eval; with groups AutoRAG (MRR)", ("MRR", "recip rank")),
    "AP": MeasureDefinition("average_precision", "trec_eval; with groups AutoRAG (MAP)", ("MAP",)),
    "nDCG": MeasureDefinition("ndcg", _NDCG, (), ", with gains or not"),
    "Success": MeasureDefinition("hit_rate", "ir_measures (Success)", ("hit", "hits")),
    "Rprec": MeasureDefinition("r_precision", "trec_eval"),
}
"""The measures by their names."""


def _plain(name: str) -> str:
    """Return a name without case, spaces, hyphens and underscores."""
    return re.sub(r"[\s_-]", "", name).lower()


_NAMES = {
    _plain(alias): name
    for name, definition in MEASURES.items()
    for alias in (name, definition.key, *definition.aliases)
}


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure of a ranking with its cut-off; ``parse_measure`` reads its text.

    Attributes:
        name: P, R, R_cap, F1, RR, AP, nDCG, Success or Rprec.
        cutoff: How many of the retrieved ids count, at least 1; None for all. Rprec takes none.

    Raises:
        ValueError: The measure does not exist, or it has no such cut-off.
    """

    name: str
    cutoff: int | None = None

    def __post_init__(self) -> None:
        if self.name not in MEASURES:
            raise ValueError(_unknown(self.name, self.name, ""))
        checked_cutoff(self.cutoff)
        if self.name == "Rprec" and self.cutoff is not None:
            raise ValueError("Rprec has no cut-off: it uses the number of relevant ids")

    def __str__(self) -> str:
        return self.name if self.cutoff is None else f"{self.name}@{self.cutoff}"

    def __call__(self, relevant: Relevant, retrieved: Iterable[Hashable]) -> float | None:
        """Return the measure of a ranking, 0 to 1; None if nothing is relevant."""
        return ranking_scores(relevant, retrieved, [self]).get(self.key)

    @property
    def key(self) -> str:
        """The name in results, such as ``ndcg@10`` or ``reciprocal_rank``."""
        key = MEASURES[self.name].key
        return key if self.cutoff is None else f"{key}@{self.cutoff}"


DEFAULT_MEASURES: tuple[Measure, ...] = tuple(
    Measure(name) for name in ("P", "R", "F1", "RR", "AP", "nDCG", "Success", "Rprec")
)
"""The measures that an evaluation computes by default, over all retrieved ids."""


def parse_measure(text: str) -> Measure:
    """Return the measure that a text names, such as ``nDCG@10``, ``AP`` or ``Success@5``.

    Case, hyphens and underscores do not matter. Common other names are read too: ``MRR`` is RR, ``MAP`` is AP,
    ``precision@5`` is P@5, ``hit_rate`` is Success, ``R-precision`` is Rprec, ``SetP`` is P.

    Raises:
        TypeError: It is not a text.
        ValueError: The measure does not exist (the message has the nearest names), or the cut-off is not an integer
            of at least 1.

    Example:
        >>> parse_measure("nDCG@10")
        Measure(name='nDCG', cutoff=10)
        >>> str(parse_measure("mrr")), parse_measure("mrr").key
        ('RR', 'reciprocal_rank')
        >>> parse_measure("nDGC@10")
        Traceback (most recent call last):
        ...
        ValueError: unknown measure 'nDGC@10': did you mean nDCG@10?
    """
    if not isinstance(text, str):
        raise TypeError(f"a measure is named by a text such as nDCG@10, not by {type(text).__name__}")
    stem, at, tail = text.partition("@")
    name = _NAMES.get(_plain(stem))
    if name is None:
        raise ValueError(_unknown(text, stem, at + tail))
    if not at:
        return Measure(name)
    if _plain(stem).startswith("set"):
        raise ValueError(
            f"{stem.strip()} takes no cut-off, as it is over all that was retrieved: write {name}@{tail:.20}"
        )
    # Nine digits: more than any ranking needs, and fewer than Python refuses to read.
    if not re.fullmatch(r"0*[1-9][0-9]{0,8}", tail.strip(), re.ASCII):
        raise ValueError(f"the cut-off of {text!r:.60} is a whole number of at least 1, as in P@5")
    return Measure(name, int(tail))


def ranking_scores(
    relevant: Relevant, retrieved: Iterable[Hashable], measures: Iterable[Measure | str] = DEFAULT_MEASURES
) -> dict[str, float]:
    """Return several measures of one ranking by their keys, reading the input once.

    Args:
        relevant: Ids, gains by id, or groups of ids, as for the functions of ``metrics.ranking``.
        retrieved: Ids by rank; repeated ones count once.
        measures: Measures, or their names for ``parse_measure``; the result has their order.

    Returns:
        Values from 0 to 1; empty if nothing is relevant.

    Raises:
        TypeError: ``relevant`` or ``retrieved`` is not an iterable of ids, or ``measures`` not one of measures.
        ValueError: Ids and groups are mixed, a gain is not finite, or a measure does not exist.

    Example:
        >>> ranking_scores(["a", "b"], ["c", "a"], ["R@1", "RR"])
        {'recall@1': 0.0, 'reciprocal_rank': 0.5}
    """
    parsed = _parsed(measures)
    hits = ranked_hits(relevant, retrieved)
    if hits is None:
        return {}
    return {measure.key: getattr(hits, MEASURES[measure.name].key)(measure.cutoff) for measure in parsed}


def _parsed(measures: Iterable[Measure | str]) -> list[Measure]:
    if isinstance(measures, str | Measure):
        raise TypeError(f"measures is a list of measures, also if it has just one: [{str(measures)!r}]")
    if not isinstance(measures, Iterable):
        raise TypeError(f"measures is a list of measures, not {type(measures).__name__}")
    return [measure if isinstance(measure, Measure) else parse_measure(measure) for measure in measures]


def _unknown(text: str, stem: str, tail: str) -> str:
    """Return the message on a text that names no measure, with the nearest names."""
    letters, digits = re.fullmatch(r"(.*?)([0-9]*)", _plain(stem), re.DOTALL).groups()  # type: ignore[union-attr]
    tail = tail or (digits and f"@{digits}")
    near = [letters] if letters in _NAMES else get_close_matches(_plain(stem), _NAMES, n=3, cutoff=0.5)
    names = [name if name == "Rprec" else name + tail for name in dict.fromkeys(_NAMES[alias] for alias in near)]
    advice = f"did you mean {' or '.join(names)}?" if names else f"the measures are {', '.join(MEASURES)}"
    return f"unknown measure {text!r:.60}: {advice}"
