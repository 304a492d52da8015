import json
from pathlib import Path

import pytest
from support.openai_stub import OpenAIStub, http_error

from graphrag_eval_lc.onboarding.doctor import Check, Examination

AGENT = '''
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.tools import tool


@tool
def ask_graph(query: str) -> str:
    """Run a SPARQL query."""
    return "[]"


class Model(FakeListChatModel):
    def bind_tools(self, tools, **options):
        return self


agent = create_agent(Model(responses=["Oslo"]), [ask_graph])
'''
DATASET = """
- template_id: names
  questions:
  - id: a
    question_text: "What is a called?"
    reference_steps:
    - - {name: sparql_query, output: '{"head": {"vars": ["n"]}, "results": {"bindings": []}}', \
output_media_type: application/sparql-results+json}
"""
CONFIG = "steps: {names: {ask_graph: sparql_query}}\ngates: [{metric: steps_score, under: 0.5}]\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in {"my_agent.py": AGENT, "qa.yaml": DATASET, "config.yaml": CONFIG}.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def found(area: str, **examined: object) -> list[Check]:
    defaults: dict[str, object] = {
        "agent": "my_agent.py:agent",
        "dataset": Path("qa.yaml"),
        "config": Path("config.yaml"),
        "output": Path("runs"),
    }
    checks = list(Examination(**{**defaults, **examined}).checks())  # type: ignore[arg-type]
    return [check for check in checks if check.area == area]


@pytest.mark.full
def test_valid_project_has_no_errors_or_warnings() -> None:
    for area in ("config", "agent", "steps", "gates", "output"):
        checks = found(area)
        assert checks, area
        assert {check.level for check in checks} == {"ok"}, checks


def test_agent_is_reported_with_its_tools() -> None:
    [check] = found("agent")
    assert check.what == "my_agent.py:agent takes messages; tools: ask_graph"


def test_other_checks_run_if_the_agent_cannot_be_loaded() -> None:
    [check] = found("agent", agent="absent.py:agent")
    assert check.level == "error"
    assert "absent.py" in check.what
    assert found("output", agent="absent.py:agent")[0].level == "ok"


def test_missing_agent_and_dataset_are_errors_with_a_hint() -> None:
    for area in ("agent", "dataset"):
        [check] = found(area, agent=None, dataset=None)
        assert check.level == "error"
        assert f"run: {{{area}:" in check.hint


def test_unknown_tool_in_the_config_is_a_warning() -> None:
    Path("config.yaml").write_text("steps: {names: {ask_grap: sparql_query}}\n")
    [_, check] = found("agent")
    assert check.level == "warning"
    assert check.what.startswith("steps.names names ask_grap, which is not a visible tool")
    assert check.hint == "Did you mean ask_graph?"


def test_reference_steps_without_a_matching_tool_are_a_warning() -> None:
    [check] = found("steps", config=None)
    assert check.what == "no visible tool of the agent matches reference steps called sparql_query"
    assert check.hint == "If ask_graph is this tool, write steps: {names: {ask_graph: sparql_query}} in the config."


def test_lookup_is_suggested_under_the_agents_tool_name() -> None:
    more = AGENT.replace("def ask_graph", "def lookup").replace("Run a SPARQL query.", "Find an IRI by a label.")
    tools = AGENT.replace("\n\nclass", more[more.index("\n\n@tool") : more.index("\n\nclass")] + "\n\nclass")
    Path("my_agent.py").write_text(tools.replace("[ask_graph])", "[ask_graph, lookup])"))
    Path("qa.yaml").write_text(DATASET + "    - - {name: iri_discovery, output: 'urn:a'}\n")
    check, *_ = found("steps", config=None)
    target = "write steps: {names: {TOOL: autocomplete_search}} in the config."
    assert check.what.endswith("matches reference steps called iri_discovery")
    assert check.hint.endswith(f"{target} Tools without a reference step: ask_graph, lookup.")
    Path("config.yaml").write_text("steps: {names: {ask_graph: sparql_query, lookup: autocomplete_search}}")
    [check] = found("steps")
    fulfilled = "iri_discovery by ask_graph, lookup; sparql_query by ask_graph"
    assert (check.level, check.what) == ("ok", f"a tool matches each kind of reference step: {fulfilled}")


def test_mistakes_in_the_dataset_are_errors_with_their_location() -> None:
    Path("qa.yaml").write_text("- template_id: t\n  questions:\n  - {id: a}\n")
    [check] = found("dataset")
    assert check.level == "error"
    assert "qa.yaml, line 3, question a, key [0].questions[0].question_text" in check.what
    assert "question_text" in check.what


def test_mistake_in_the_config_is_an_error() -> None:
    Path("config.yaml").write_text("stepps: {}\n")
    [check] = found("config")
    assert (check.level, check.hint) == ("error", "Did you mean steps?")


def test_gate_on_an_unknown_metric_is_an_error() -> None:
    Path("config.yaml").write_text("gates: [{metric: steps_scor, under: 0.5}]\n")
    assert found("gates")[0].level == "error"


def test_unwritable_output_folder_is_an_error(folder: Path) -> None:
    Path("file").write_text("")
    [check] = found("output", output=Path("file/runs"))
    assert check.level == "error"


@pytest.mark.full
def test_agent_is_called_only_on_request() -> None:
    assert found("answer") == []
    checks = found("answer", asks_agent=True)
    assert checks[0].what.startswith("a was answered: 0 steps")
    assert "no tool was called" in [check.what for check in checks]


def judged(stub: OpenAIStub) -> Path:
    generation = {"base_url": stub.base_url, "api_key": "sk-not-a-key"}
    Path("judged.json").write_text(json.dumps({"llm": {"generation": generation}}))
    return Path("judged.json")


def test_models_are_called_only_on_request(openai_stub: OpenAIStub) -> None:
    openai_stub.answer = lambda request: {"word": "yes"}
    config = judged(openai_stub)
    assert found("models", config=config)[-1].hint == "Add --ask-models: one tiny request each."
    assert openai_stub.requests == []
    checks = found("models", config=config, asks_models=True)
    assert [check.level for check in checks] == ["ok", "ok", "ok"]
    assert checks[-1].what.startswith("openai:gpt-4o-mini answers, for ")
    assert len(openai_stub.requests) == 1


def test_wrong_api_key_is_an_error_that_does_not_show_it(openai_stub: OpenAIStub) -> None:
    openai_stub.chat_faults.extend([http_error(401, "Incorrect API key provided: sk-not-a-key")] * 10)
    check = found("models", config=judged(openai_stub), asks_models=True)[-1]
    assert check.level == "error"
    assert "sk-not-a-key" not in str(check)


def test_missing_api_key_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    Path("judged.yaml").write_text("llm: {generation: {api_key: '${NO_SUCH_KEY}'}}\n")
    [check] = found("models", config=Path("judged.yaml"))
    assert check.level == "error"
    assert "NO_SUCH_KEY is not set" in check.what
