"""Converts graphrag-eval's config to the sections of this package, and reports what has no counterpart."""

import re
from collections.abc import Collection, Iterator, Mapping
from os import PathLike
from typing import Any, Final, NamedTuple

from graphrag_eval_lc.config.judges import DEFAULT_PROVIDER
from graphrag_eval_lc.errors import ConfigError
from graphrag_eval_lc.files.reading import TextFile, line_of, parse_json_at, parse_yaml, read_text
from graphrag_eval_lc.masking import masked_values
from graphrag_eval_lc.registry.metrics import ANSWER_CORRECTNESS, ANSWER_RELEVANCE

_ADDRESS = "base_url"
_KEY = "api_key"


class Endpoint(NamedTuple):
    """An OpenAI-compatible endpoint: its address, or ``${NAME}`` of a variable, and the variable of its key, if any."""

    address: str
    key: str | None = None


class OfLangChain(NamedTuple):
    """A provider that LangChain's ``init_chat_model`` calls."""

    name: str  # LangChain's name of it
    package: str  # the package to install
    # the environment variable from which LangChain reads the key; None if it is not a single one
    key: str | None = None
    renamed: Mapping[str, str] = {}  # LangChain's names of options, by ours
    needed: Mapping[str, str] = {}  # the environment variables for options that it needs, if they are not given


ENDPOINTS: Final = {
    "together_ai": Endpoint("https://api.together.ai/v1", "TOGETHERAI_API_KEY"),
    "hosted_vllm": Endpoint("${HOSTED_VLLM_API_BASE}"),
    "lm_studio": Endpoint("${LM_STUDIO_API_BASE}"),
    "litellm_proxy": Endpoint("${LITELLM_PROXY_API_BASE}", "LITELLM_PROXY_API_KEY"),
    "groq": Endpoint("https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    "mistral": Endpoint("https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    "deepseek": Endpoint("https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
    "openrouter": Endpoint("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "fireworks_ai": Endpoint("https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY"),
    "deepinfra": Endpoint("https://api.deepinfra.com/v1/openai", "DEEPINFRA_API_KEY"),
    "perplexity": Endpoint("https://api.perplexity.ai", "PERPLEXITYAI_API_KEY"),
    "xai": Endpoint("https://api.x.ai/v1", "XAI_API_KEY"),
    "nvidia_nim": Endpoint("https://integrate.api.nvidia.com/v1", "NVIDIA_NIM_API_KEY"),
    "cerebras": Endpoint("https://api.cerebras.ai/v1", "CEREBRAS_API_KEY"),
}
OF_LANGCHAIN: Final = {
    "azure": OfLangChain(
        "azure_openai",
        "langchain-openai",
        "AZURE_OPENAI_API_KEY",
        {_ADDRESS: "azure_endpoint"},
        {"azure_endpoint": "AZURE_API_BASE", "api_version": "AZURE_API_VERSION"},
    ),
    "anthropic": OfLangChain("anthropic", "langchain-anthropic", "ANTHROPIC_API_KEY"),
    "gemini": OfLangChain("google_genai", "langchain-google-genai", "GOOGLE_API_KEY"),
    "vertex_ai": OfLangChain(
        "google_vertexai",
        "langchain-google-vertexai",
        None,
        {"vertex_project": "project", "vertex_location": "location"},
    ),
    "bedrock": OfLangChain("bedrock_converse", "langchain-aws", None, {"aws_region_name": "region_name"}),
    "cohere": OfLangChain("cohere", "langchain-cohere", "COHERE_API_KEY"),
    "ollama": OfLangChain("ollama", "langchain-ollama"),
    "ollama_chat": OfLangChain("ollama", "langchain-ollama"),
}
# Options of LiteLLM itself, which `judges` replaces.
_OF_LITELLM: Final = frozenset(
    ("num_retries", "max_retries", "timeout", "request_timeout", "drop_params", "caching", "cache")
)
_REFERENCE: Final = re.compile(r"\$\{\w+\}|os\.environ/(?P<name>\w+)")


def moved_model(old: Mapping[str, Any], place: str) -> tuple[dict[str, Any] | None, list[str]]:
    """Convert a model of graphrag-eval's config; return it, or None if nothing replaces it, and notes for the user.

    API keys are not copied: an environment variable replaces each. The notes name the section ``place``.
    """
    provider = str(old.get("provider") or DEFAULT_PROVIDER)
    notes: list[str] = []
    options = dict(_kept_options(old, place, notes))
    endpoint, of_langchain = ENDPOINTS.get(provider), OF_LANGCHAIN.get(provider)
    settings: dict[str, Any] = {"provider": provider, "model": old.get("model")}
    own_variable = f"{provider.upper().replace('-', '_')}_API_KEY"
    if of_langchain is not None:
        settings["provider"] = of_langchain.name
        is_asked_for = provider == "azure"  # LangChain finds the other keys automatically
        settings |= _key_of(old, of_langchain.key, own_variable, place, notes, is_needed=is_asked_for)
        settings |= {of_langchain.renamed.get(key, key): value for key, value in options.items()}
        for key, variable in of_langchain.needed.items():
            settings.setdefault(key, f"${{{variable}}}")
        packages = f"pip install langchain {of_langchain.package}"
        notes.append(f"{place}.provider {provider} is {of_langchain.name} here, through LangChain: {packages}.")
    elif endpoint is not None:
        settings[_ADDRESS] = endpoint.address
        settings |= _key_of(old, endpoint.key, own_variable, place, notes, is_needed=True) | options
        notes.append(f"{place}.provider {provider} is called directly: it has OpenAI's API.")
    elif provider == DEFAULT_PROVIDER or _ADDRESS in options:
        is_needed = provider != DEFAULT_PROVIDER
        settings |= _key_of(old, own_variable, own_variable, place, notes, is_needed=is_needed) | options
        return settings, notes
    else:
        what = f"{place}.provider {provider} has no counterpart that is known here, so the model is left out"
        hint = "name one that LangChain's init_chat_model knows, or an endpoint with OpenAI's API, such as LiteLLM's"
        return None, [*notes, f"{what}: {hint} proxy, with its address as base_url."]
    names = [str(value)[2:-1] for value in settings.values() if _REFERENCE.fullmatch(str(value))]
    notes[-1] += f" Set {' and '.join(names)} in the environment." if names else ""
    return settings, notes


def _kept_options(old: Mapping[str, Any], place: str, notes: list[str]) -> Iterator[tuple[str, Any]]:
    """Yield the options of a model that mean the same here; the address always has the same key."""
    for key, value in old.items():
        if key in _OF_LITELLM:
            notes.append(f"{place}.{key} is not copied: the section judges says what is retried, awaited and cached.")
        elif key in ("provider", "model", _KEY) or value is None:
            continue
        elif masked_values({key: value}) != {key: value}:
            notes.append(f"{place}.{key} holds a secret and is not copied: add it, with ${{NAME}} for the secret.")
        else:
            yield _ADDRESS if key == "api_base" else key, value


def _key_of(
    old: Mapping[str, Any], variable: str | None, own_variable: str, place: str, notes: list[str], *, is_needed: bool
) -> dict[str, str]:
    """Return the source of the API key: an environment variable, never the key itself."""
    given = old.get(_KEY)
    if given is None:
        return {_KEY: f"${{{variable}}}"} if is_needed and variable else {}
    if (reference := _REFERENCE.fullmatch(str(given))) is not None:
        return {_KEY: f"${{{reference['name']}}}" if reference["name"] else str(given)}
    name = variable or own_variable
    notes.append(f"{place}.{_KEY} is not copied: set the environment variable {name} to it.")
    return {_KEY: f"${{{name}}}"}


_LLM: Final = "llm"
_CUSTOM: Final = "custom_evaluations"
_GENERATION, _EMBEDDING = "generation", "embedding"
_SECTIONS: Final = {
    _LLM: (_GENERATION, _EMBEDDING),
    ANSWER_CORRECTNESS: ("enabled", "prompt"),
    ANSWER_RELEVANCE: ("enabled",),
}
# The model that each section needs.
_NEEDED: Final = {_CUSTOM: _GENERATION, ANSWER_CORRECTNESS: _GENERATION, ANSWER_RELEVANCE: _EMBEDDING}


def moved_config(source: str | PathLike[str] | Mapping[str, Any] | None) -> tuple[dict[str, Any], list[str]]:
    """Convert graphrag-eval's config, given as a file or as its content, to our sections, with notes for the user."""
    file = None
    values: Any = source
    if source is not None and not isinstance(source, Mapping):
        file = read_text(source, ConfigError, what="config")
        is_json = file.format == "json"
        path = file.path
        values = (
            parse_json_at(file.text, ConfigError, what="config", path=path)
            if is_json
            else parse_yaml(file, ConfigError, what="config")
        )
    values = {} if values is None else values
    if not isinstance(values, Mapping):
        raise _error(file, (), "it is not a mapping of sections", "Give the config of graphrag-eval.")
    notes = list(_unread(values, (*_SECTIONS, _CUSTOM)))
    moved: dict[str, Any] = {}
    for name, known in _SECTIONS.items():
        section = values.get(name)
        if section is not None and not isinstance(section, Mapping):
            raise _error(file, (name,), "a mapping of keys to values is needed here", "Give the section's keys.")
        notes += _unread(section or {}, known, f"{name}.")
        if kept := {key: section[key] for key in known if section and section.get(key) is not None}:
            moved[name] = _models(kept, file, notes) if name == _LLM else kept
    if values.get(_CUSTOM):
        moved[_CUSTOM] = values[_CUSTOM]
    if _LLM in moved and _GENERATION not in moved[_LLM]:
        del moved[_LLM]
        notes.append("Without a model that generates nothing is judged; add llm.generation to the new file.")
    for name, model in _NEEDED.items():
        if name in moved and model not in moved.get(_LLM, {}):
            del moved[name]
            notes.append(f"{name} is left out, as it needs a model in {_LLM}.{model}, and there is none.")
    return moved, notes


def _models(section: Mapping[str, Any], file: TextFile | None, notes: list[str]) -> dict[str, Any]:
    moved = {}
    for name, model in section.items():
        if not isinstance(model, Mapping) or not model.get("model"):
            raise _error(file, (_LLM, name), "a model with provider and model is needed here", "Add both.")
        settings, of_model = moved_model(model, f"{_LLM}.{name}")
        notes += of_model
        if settings is not None:
            moved[name] = settings
    return moved


def _error(file: TextFile | None, place: tuple[str, ...], what: str, hint: str) -> ConfigError:
    line = line_of(file, place) if file and place else None
    return ConfigError(what, path=file.path if file else None, line=line, key=".".join(place) or None, hint=hint)


def _unread(section: Mapping[str, Any], known: Collection[str], place: str = "") -> Iterator[str]:
    """Yield a sentence on each key of a section that graphrag-eval does not read."""
    return (f"{place}{key} is not a key of graphrag-eval and is left out." for key in section if key not in known)
