import json
from typing import Any

import pytest

from graphrag_eval_lc.judges.chat_model import EndpointAbilities

KNOWN = EndpointAbilities()
REQUEST = {"temperature": 0.0, "max_tokens": 9}


class RefusalError(Exception):
    def __init__(self, text: str, status: int = 400, body: object = None) -> None:
        super().__init__(text)
        self.status_code, self.body = status, body


@pytest.mark.parametrize(
    ("text", "learned"),
    [
        ("Invalid parameter: 'response_format' of type 'json_schema' is not supported", {"mode": "tools"}),
        ("This response_format type is unavailable now", {"mode": "tools"}),
        ("This model does not support response format `json_schema`", {"mode": "tools"}),
        ("structured outputs are not available", {"mode": "tools"}),
        ("Unsupported value: 'temperature' does not support 0.0 with this model", {"takes_temperature": False}),
        ("Use 'max_completion_tokens' instead", {"tokens_key": "max_completion_tokens"}),
    ],
)
def test_rejected_parameter_is_left_out(text: str, learned: dict[str, Any]) -> None:
    assert KNOWN.learned_from(RefusalError(text), REQUEST) == EndpointAbilities(**learned)


@pytest.mark.parametrize(
    "error",
    [
        RefusalError("<html>Not Implemented</html>", status=501),
        RefusalError("failed to initialize samplers", status=500),
        RefusalError("json_validate_failed: adjust the json_schema"),  # after a retry
    ],
)
def test_server_without_schema_support_gets_the_next_mode(error: Exception) -> None:
    assert KNOWN.learned_from(error, REQUEST) == EndpointAbilities(mode="tools")


def test_error_body_names_the_rejected_parameter() -> None:
    error = RefusalError("Error code: 422", 422, {"response_format": ["This field is not supported."]})
    assert KNOWN.learned_from(error, REQUEST) == EndpointAbilities(mode="tools")


@pytest.mark.parametrize(
    "error",
    [
        RefusalError("This model's maximum context length is 128000 tokens"),
        RefusalError("the tools are not ready", status=500),
        RefusalError(json.dumps({"message": "broken\nrequest"})),
        ValueError("response_format"),
    ],
)
def test_other_errors_change_nothing(error: Exception) -> None:
    assert KNOWN.learned_from(error, REQUEST) is None


def test_modes_fall_back_from_tools_to_json_to_text() -> None:
    tools = EndpointAbilities(mode="tools")
    json_mode = tools.learned_from(RefusalError("This model does not support tools"), {})
    assert json_mode == EndpointAbilities(mode="json_object")
    text = json_mode.learned_from(RefusalError("response_format is not supported"), {})
    assert text == EndpointAbilities(mode="text")
    assert text.learned_from(RefusalError("response_format is not supported"), {}) is None
