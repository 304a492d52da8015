"""Which versions are installed of what this package needs, and which of its extras are complete."""

import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version

from packaging.requirements import Requirement

_PACKAGE = "graphrag-eval-lc"
_OWN_EXTRA = "all"


@dataclass(frozen=True, slots=True)
class Installed:
    """What is installed of a requirement.

    Attributes:
        name: The package.
        needed: The versions that were tested, such as ``>=1.4.0,<2``.
        version: The one that is installed; None: none.
        extra: The extra that needs it; None: the core.
    """

    name: str
    needed: str
    version: str | None
    extra: str | None = None

    @property
    def is_in_range(self) -> bool:
        """Whether a version is installed, and was tested."""
        if self.version is None:
            return False
        return Requirement(f"{self.name}{self.needed}").specifier.contains(self.version, prereleases=True)


def installed() -> list[Installed]:
    """Return what is installed of each requirement, those of the core first; none where nothing is known of it."""
    return list(_installed())


def extras(found: list[Installed]) -> Mapping[str, list[str]]:
    """Return the packages that are missing of each extra."""
    missing: dict[str, list[str]] = {}
    for each in found:
        if each.extra is not None:
            missing.setdefault(each.extra, []).extend([] if each.version is not None else [each.name])
    return missing


def python_version() -> str:
    """Return the version of Python."""
    return platform.python_version()


def _installed() -> Iterator[Installed]:
    try:
        texts = requires(_PACKAGE) or []
    except PackageNotFoundError:  # used from a folder that was never installed
        return
    for text in texts:
        requirement = Requirement(text)
        if requirement.name == _PACKAGE:
            continue
        extra = _extra_of(requirement)
        if extra != _OWN_EXTRA:
            yield Installed(requirement.name, str(requirement.specifier), _version(requirement.name), extra)


def _extra_of(requirement: Requirement) -> str | None:
    if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
        return None
    text = str(requirement.marker)
    return text.rpartition("extra == ")[2].strip("\"' ()") or None


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
