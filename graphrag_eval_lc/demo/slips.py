"""The planner's mistakes, so that a run of the demo has something to find."""

from enum import Enum


class Slip(Enum):
    """A mistake as language models make them."""

    FORGETS_PREFIX = "sends the query without its prefixes, reads the error and fixes it"
    WRONG_CLASS_CORRECTED = "searches in the wrong class, finds nothing and searches in all classes"
    WRONG_CLASS = "searches in the wrong class, finds nothing and stops"
    WRONG_COLUMN = "takes a property that sounds like the wanted one"
    FORGETS_FILTER = "leaves a condition out, so that there are too many rows"
    DROPS_DUPLICATES = "asks for distinct rows where equal ones count"
    WRONG_ORDER = "sorts the wrong way round"
    NO_ATTEMPT = "says that it cannot do it, without trying"
    GOES_ROUND = "tries the same two queries again and again until the recursion limit ends the run"
    TOO_FEW = "asks for fewer documents than the question is worth"
    IRI_FOR_MRID = "passes an IRI where an mRID is wanted, reads the error and fixes it"
    WRONG_GRANULARITY = "takes hours whatever steps of time are wanted"
    WRONG_PERIOD = "takes hours for days, so that the period is too short"
    GUESSES_TODAY = "takes today from memory instead of asking for it"


SLIPS = {
    ("transformers", "STAVANGER"): Slip.FORGETS_PREFIX,
    ("transformers", "KRISTIANSAND"): Slip.WRONG_COLUMN,
    ("substations", "NO5"): Slip.WRONG_CLASS_CORRECTED,
    ("substations", "SE3"): Slip.WRONG_CLASS,
    ("neighbours", "BERGEN"): Slip.FORGETS_FILTER,
    ("neighbours", "SYLLING"): Slip.FORGETS_PREFIX,
    ("neighbours", "FEDA"): Slip.WRONG_COLUMN,
    ("line_voltages", "RANA"): Slip.DROPS_DUPLICATES,
    ("capacity", "NO3"): Slip.WRONG_COLUMN,
    ("capacity", "NO5"): Slip.FORGETS_FILTER,
    ("dc_link", "NO4"): Slip.NO_ATTEMPT,
    ("longest_lines", "NO4"): Slip.WRONG_ORDER,
    ("longest_lines", "DC"): Slip.GOES_ROUND,
    ("search", "STEINS"): Slip.WRONG_CLASS,
    ("documents", "transformers"): Slip.TOO_FEW,
    ("production", "LIMFJORD"): Slip.WRONG_GRANULARITY,
    ("production", "MARKBYGDEN"): Slip.WRONG_PERIOD,
    ("flow", "DC STOCKHOLM-RAUMA 1"): Slip.GUESSES_TODAY,
    ("flow", "DC TONSTAD-WILSTER 1"): Slip.IRI_FOR_MRID,
}
"""The mistakes, by plan and by what the question names."""
