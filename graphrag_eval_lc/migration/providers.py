"""The providers of models that graphrag-eval reaches through LiteLLM, and what takes their place here."""

import re
from collections.abc import Mapping
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
        renamed: LangChain's names of options, by LiteLLM's.
    """

    name: str
    package: str
    key: str | None = None
    renamed: Mapping[str, str] = field(default_factory=dict)


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
        {"api_base": "azure_endpoint", _ADDRESS: "azure_endpoint"},
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
    provider, notes = str(old.get("provider") or DEFAULT_PROVIDER), []
    rest = {}
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
            rest[key] = value
    base = {"provider": provider, "model": old.get("model")}
    address = rest.pop(_ADDRESS, None) or rest.pop("api_base", None)
    rest.pop("api_base", None)
    if provider in OF_LANGCHAIN:
        there = OF_LANGCHAIN[provider]
        if address is not None:
            rest[there.renamed.get(_ADDRESS, _ADDRESS)] = address
        elif provider == "azure":
            rest["azure_endpoint"] = "${AZURE_API_BASE}"
        settings = {
            **base,
            "provider": there.name,
            **_own_key(old, there.key, place, notes),
            **{there.renamed.get(key, key): value for key, value in rest.items()},
        }
        if provider == "azure":
            settings.setdefault("api_version", "${AZURE_API_VERSION}")
        notes.append(
            f"{place}.provider {provider} is {there.name} here and is asked through LangChain: "
            f"pip install langchain {there.package}."
        )
        return MovedModel(settings, tuple(notes))
    endpoint = ENDPOINTS.get(provider)
    if endpoint is None and provider != DEFAULT_PROVIDER and address is None:
        notes.append(
            f"{place}.provider {provider} has no counterpart that is known here, so the model is left out: name one "
            "that LangChain's init_chat_model knows, or serve the model with LiteLLM's proxy or another endpoint that "
            "speaks OpenAI's language and write its address as base_url."
        )
        return MovedModel(None, tuple(notes))
    if endpoint is not None:
        notes.append(f"{place}.provider {provider} is asked directly, as its endpoint speaks OpenAI's language.")
    where = address or (endpoint.address if endpoint is not None else None)
    variable = endpoint.key if endpoint is not None else f"{provider.upper().replace('-', '_')}_API_KEY"
    settings = {
        **base,
        **({_ADDRESS: where} if where is not None else {}),
        **_own_key(old, variable, place, notes),
        **rest,
    }
    return MovedModel(settings, tuple(notes))


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
