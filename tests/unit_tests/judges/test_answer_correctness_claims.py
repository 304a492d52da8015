import pytest
from pydantic import TypeAdapter, ValidationError

from graphrag_eval_lc.judges.answer_correctness import Claim

CLAIM: TypeAdapter[str] = TypeAdapter(Claim)


def test_claim_is_given_without_the_space_around_it() -> None:
    assert CLAIM.validate_python(" Paris is in France.\n") == "Paris is in France."


@pytest.mark.parametrize("text", ["", " \n\t", None, 3])
def test_claim_is_a_text_that_is_not_blank(text: object) -> None:
    with pytest.raises(ValidationError):
        CLAIM.validate_python(text)


def test_schema_of_a_claim_is_a_plain_string_which_each_endpoint_takes() -> None:
    assert CLAIM.json_schema() == {"type": "string"}
