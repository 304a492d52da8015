"""The packages that this package needs, and their installed versions."""

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, requires, version

from packaging.requirements import Requirement

_PACKAGE = "graphrag-eval-lc"
_OWN_EXTRA = "all"


def requirements_by_extra() -> Mapping[str, list[Requirement]]:
    """Return the packages that each extra needs, those of the core under ``""``; empty if this one is not installed."""
    found: dict[str, list[Requirement]] = {}
    try:
        texts = requires(_PACKAGE) or []
    except PackageNotFoundError:
        return found
    for each in map(Requirement, texts):
        is_core = each.marker is None or each.marker.evaluate({"extra": ""})
        extra = "" if is_core else str(each.marker).rpartition("extra == ")[2].strip("\"' ()")
        if each.name != _PACKAGE and extra != _OWN_EXTRA:
            found.setdefault(extra, []).append(each)
    return found


def installed_version(name: str) -> str | None:
    """Return the version of a package; None if it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def is_tested(package: Requirement) -> bool:
    """Return whether the installed version was tested with this package; a missing one was not."""
    installed = installed_version(package.name)
    return installed is not None and package.specifier.contains(installed, prereleases=True)
