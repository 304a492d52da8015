"""The providers of models that graphrag-eval reaches through LiteLLM, and what takes their place here."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from graphrag_eval_lc.config.judges import DEFAULT_PROVIDER
from graphrag_eval_lc.masking import masked_values

_ADDRESS = "base_url"
_KEY = "api_key"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An endpoint that speaks OpenAI's language.

    Attributes:
        address: Its address, or the environment variable that LiteLLM reads it from, as ``${NAME}``.
        key: The environment variable with the key; None where the endpoint may need none.
    """

    address: str
    key: str | None = None


@dataclass(frozen=True, slots=True)
class OfLangChain:
    """A provider that LangChain's ``init_chat_model`` asks.

    Attributes:
        name: LangChain's name of it.
        package: The package to install.
        key: The environment variable that LangChain takes the key from; None where it is no single one.
        renamed: LangChain's names of options, by ours.
        needed: The environment variables for options that it needs, where they are not given.
    """

    name: str
    package: str
    key: str | None = None
    renamed: Mapping[str, str] = field(default_factory=dict)
    needed: Mapping[str, str] = field(default_factory=dict)


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
# What LiteLLM is told of its own work, and why it is not needed here.
_OF_LITELLM: Final = {
    "num_retries": "judges.max_retries says how often a request is sent again",
    "max_retries": "judges.max_retries says how often a request is sent again",
    "timeout": "judges.timeout says how long an answer is waited for",
    "request_timeout": "judges.timeout says how long an answer is waited for",
    "drop_params": "what a model refuses is left out by itself",
    "caching": "judges.cache keeps the answers in the run's folder",
    "cache": "judges.cache keeps the answers in the run's folder",
}
_REFERENCE = re.compile(r"\$\{\w+\}|os\.environ/(?P<name>\w+)")


@dataclass(frozen=True, slots=True)
class MovedModel:
    """A model of graphrag-eval's config as it is written here.

    Attributes:
        settings: The section; None where nothing can stand for the model.
        notes: One sentence for each thing that its user should know or do.
    """

    settings: dict[str, Any] | None
    notes: tuple[str, ...] = ()


def moved_model(old: Mapping[str, Any], place: str) -> MovedModel:
    """Return a model of graphrag-eval's config, ``llm.generation`` or ``llm.embedding``, as it is written here.

    Keys are not copied: an environment variable stands for each.

    Args:
        old: The section.
        place: Its name, for the sentences.

    Example:
        >>> moved_model({"provider": "groq", "model": "llama-3.3-70b-versatile"}, "llm.generation").settings["base_url"]
        'https://api.groq.com/openai/v1'
    """
    provider = str(old.get("provider") or DEFAULT_PROVIDER)
    notes: list[str] = []
    options = dict(_kept_options(old, place, notes))
    if provider in OF_LANGCHAIN:
        settings = _of_langchain(provider, old, options, place, notes)
    elif provider in ENDPOINTS or provider == DEFAULT_PROVIDER or _ADDRESS in options:
        settings = _of_endpoint(provider, old, options, place, notes)
    else:
        notes.append(
            f"{place}.provider {provider} has no counterpart that is known here, so the model is left out: name one "
            "that LangChain's init_chat_model knows, or serve the model with LiteLLM's proxy or another endpoint that "
            "speaks OpenAI's language and write its address as base_url."
        )
        return MovedModel(None, tuple(notes))
    return MovedModel(settings, tuple(notes))


def _kept_options(old: Mapping[str, Any], place: str, notes: list[str]) -> Iterator[tuple[str, Any]]:
    """Yield the options of a model that mean the same here, with the address under one name."""
    for key, value in old.items():
        if key in _OF_LITELLM:
            notes.append(f"{place}.{key} is not taken over: {_OF_LITELLM[key]}.")
        elif key in ("provider", "model", _KEY) or value is None:
            continue
        elif masked_values({key: value}) != {key: value}:
            notes.append(
                f"{place}.{key} holds a secret and is not copied: add it, with ${{NAME}} in place of the secret."
            )
        else:
            yield _ADDRESS if key == "api_base" else key, value


def _of_langchain(
    provider: str, old: Mapping[str, Any], options: Mapping[str, Any], place: str, notes: list[str]
) -> dict[str, Any]:
    there = OF_LANGCHAIN[provider]
    settings = {
        "provider": there.name,
        "model": old.get("model"),
        **_own_key(old, there.key, place, notes),
        **{there.renamed.get(key, key): value for key, value in options.items()},
    }
    for key, variable in there.needed.items():
        settings.setdefault(key, f"${{{variable}}}")
    notes.append(
        f"{place}.provider {provider} is {there.name} here and is asked through LangChain: "
        f"pip install langchain {there.package}.{_wanted(settings)}"
    )
    return settings


def _of_endpoint(
    provider: str, old: Mapping[str, Any], options: Mapping[str, Any], place: str, notes: list[str]
) -> dict[str, Any]:
    endpoint = ENDPOINTS.get(provider)
    address = {_ADDRESS: endpoint.address} if endpoint is not None else {}
    variable = endpoint.key if endpoint is not None else f"{provider.upper().replace('-', '_')}_API_KEY"
    settings = {
        "provider": provider,
        "model": old.get("model"),
        **address,
        **_own_key(old, variable, place, notes),
        **options,
    }
    if endpoint is not None:
        notes.append(f"{place}.provider {provider} is asked directly: it speaks OpenAI's language.{_wanted(settings)}")
    return settings


def _wanted(settings: Mapping[str, Any]) -> str:
    """Return a sentence on the environment variables that settings name; none where they name none."""
    texts = [str(value) for value in settings.values()]
    names = [text[2:-1] for text in texts if _REFERENCE.fullmatch(text)]
    return f" Set {' and '.join(names)} in the environment." if names else ""


def _own_key(old: Mapping[str, Any], variable: str | None, place: str, notes: list[str]) -> dict[str, str]:
    """Return where the key comes from: an environment variable, and never the key itself."""
    given = old.get(_KEY)
    if given is None:
        # OpenAI's own key is read by itself; so are those of LangChain's models.
        is_known = old.get("provider") in OF_LANGCHAIN or old.get("provider") in (None, DEFAULT_PROVIDER)
        return {} if variable is None or (is_known and old.get("provider") != "azure") else {_KEY: f"${{{variable}}}"}
    reference = _REFERENCE.fullmatch(str(given))
    if reference is not None:
        return {_KEY: f"${{{reference['name']}}}" if reference["name"] else str(given)}
    name: str = variable or f"{str(old.get('provider')).upper().replace('-', '_')}_API_KEY"
    notes.append(f"{place}.{_KEY} is not copied into the new file: set the environment variable {name} to it.")
    return {_KEY: f"${{{name}}}"}
