"""The lower bounds of the dependencies are tested: `make test-lowest` uses exactly these versions."""

from itertools import chain

from lowest_versions import PROJECT, lowest


def test_every_dependency_has_a_lower_and_an_upper_bound() -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    own = PROJECT["project"]["name"]
    listed = [*PROJECT["project"]["dependencies"], *chain(*extras.values())]
    requirements = [requirement for requirement in listed if not requirement.startswith(own)]
    assert len(lowest(requirements)) == len(requirements)
