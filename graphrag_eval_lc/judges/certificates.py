"""Reads a judge's certificate, checks that it belongs to the judge of a run, and summarises it in a sentence."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from graphrag_eval_lc.errors import ConfigError, cannot_read
from graphrag_eval_lc.registry.metrics import ANSWER_CORRECTNESS

CERTIFICATE_KEY = "judges.certificate"
_HINT = "Write it with graphrag-eval-lc judge certify, or leave the key out."


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class _Share(_Part):
    count: int
    of: int
    low: float | None
    high: float | None

    def __str__(self) -> str:
        interval = "" if self.low is None or self.high is None else f" ({self.low:.2f} to {self.high:.2f})"
        return f"{self.count:,} of {self.of:,}{interval}"


class _Judge(_Part):
    digest: str
    model: str


class _Certificate(_Part):
    created: str
    judge: _Judge
    threshold: float
    caught: _Share
    passed: _Share
    self_agreement: _Share


def certificate_record(path: str, digest: str) -> dict[str, Any]:
    """Return what run.json records of a certificate: its figures, and ``fits``, whether it has this judge's digest."""
    try:
        found = _Certificate.model_validate_json(Path(path).read_bytes())
    except OSError as problem:
        raise ConfigError(str(cannot_read(Path(path), problem)), key=CERTIFICATE_KEY, hint=_HINT) from problem
    except ValidationError as problem:
        first = problem.errors()[0]
        what = f"{path} is not a certificate ({'.'.join(map(str, first['loc'])) or 'file'}: {first['msg']})"
        raise ConfigError(what, key=CERTIFICATE_KEY, hint=_HINT) from None
    return {"path": path, "fits": found.judge.digest == digest, **found.model_dump()}


def certificate_note(judges: Mapping[str, Any] | None) -> str:
    """Return a sentence on how far to trust judged answers, from what run.json records of the judges.

    Example:
        >>> certificate_note({"metrics": ["answer_correctness"]})
        'No certificate says how good this judge is; graphrag-eval-lc judge certify makes one.'
    """
    if judges is None or ANSWER_CORRECTNESS not in (judges.get("metrics") or ()):
        return ""
    record = judges.get("certificate")
    if record is None:
        return "No certificate says how good this judge is; graphrag-eval-lc judge certify makes one."
    try:
        found = _Certificate.model_validate(record)
    except ValidationError:
        return "The certificate of this judge cannot be read."
    if not record.get("fits"):
        return (
            f"The certificate {record.get('path')} is of another judge ({found.judge.model}, or another prompt or "
            "setting), so nothing says how good this one is; make one with graphrag-eval-lc judge certify."
        )
    return (
        f"Certificate of the judge, {found.created[:10]}: it caught {found.caught} of wrong answers, passed "
        f"{found.passed} of right ones, and repeated its verdict in {found.self_agreement} answers."
    )
