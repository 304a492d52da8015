"""Loading plugins by module name, by file, and from the entry points of installed packages."""

import hashlib
import sys
from pathlib import Path

import pytest

from graphrag_eval_lc import load_dataset, register_metric
from graphrag_eval_lc.config import load_config
from graphrag_eval_lc.errors import ConfigError, PluginError
from graphrag_eval_lc.registry import plugins
from graphrag_eval_lc.registry.exporters import exporter, exporters
from graphrag_eval_lc.registry.metrics import metrics_of_users
from graphrag_eval_lc.registry.plugins import (
    SWITCH,
    known_plugins,
    load_installed_plugins,
    load_plugins,
    plugin_of,
    plugin_record,
    plugin_records,
    registered_now,
)

METRIC = """
from graphrag_eval_lc import register_metric


@register_metric(key="KEY", unit="words")
def words(question, response):
    return 1
"""


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(plugins._installed, plugins.GROUP, raising=False)  # as in a new process
    return tmp_path


def write(name: str, key: str = "words") -> str:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_text(METRIC.replace("KEY", key))
    return name


def install(entry_points: str, *, name: str = "acme-checks", version: str = "1.2.0") -> None:
    """Write the metadata of an installed package to the current folder, which is on the path."""
    folder = Path(f"{name.replace('-', '_')}-{version}.dist-info")
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (folder / "entry_points.txt").write_text(f"[graphrag_eval_lc]\n{entry_points}\n")


# --- by name ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["acme_metrics", "acme_metrics.py", "sub/acme_metrics.py", "acme.metrics"])
def test_module_or_file_can_be_a_plugin(name: str) -> None:
    write(f"{name.replace('.', '/')}.py" if not name.endswith(".py") else name)
    (plugin,) = load_plugins([name], via="--plugin")
    assert (plugin.name, plugin.via) == (name, "--plugin")
    assert plugin_of("metric words", metrics_of_users["words"].function) == plugin
    assert known_plugins() == [plugin]


def test_plugin_is_loaded_once() -> None:
    write("acme_metrics.py")
    assert load_plugins(["acme_metrics.py"]) == load_plugins(["acme_metrics.py"], via="config")
    function = metrics_of_users["words"].function
    load_plugins(["acme_metrics.py"])
    assert metrics_of_users["words"].function is function


def test_imported_module_can_be_a_plugin() -> None:
    write("acme_metrics.py")
    __import__("acme_metrics")
    assert [(plugin.name, plugin.via) for plugin in known_plugins()] == [("acme_metrics", "Python")]
    load_plugins(["acme_metrics"], via="--plugin")
    assert [(plugin.name, plugin.via) for plugin in known_plugins()] == [("acme_metrics", "--plugin")]


def test_functions_that_a_plugin_registers_from_elsewhere_belong_to_it() -> None:
    Path("acme_metrics.py").write_text(
        "import math\nfrom graphrag_eval_lc import MetricSpec, register_metric\n"
        "register_metric(MetricSpec(key='distance'), math.dist)"
    )
    load_plugins(["acme_metrics"])
    assert plugin_of("metric distance", metrics_of_users["distance"].function).name == "acme_metrics"


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("absent_of_the_test", None, "the plugin absent_of_the_test cannot be used, as the module"),
        ("absent.py", None, r"as the file absent\.py was not found\. Write package\.module or path/to/file\.py"),
        ("broken.py", "1 / 0", r"broken\.py failed with ZeroDivisionError: division by zero"),
        ("empty.py", "", r"the plugin empty\.py registers nothing\. Let it call register_metric, register_step_kind"),
        ("empty.py:words", "", r"the plugin empty\.py:words names an attribute of a module\. Write empty\.py\."),
        ("key.py", METRIC.replace("KEY", "steps_score"), "the key steps_score is one of the results' own"),
    ],
)
def test_unusable_plugin_is_one_clear_error(name: str, text: str | None, complaint: str) -> None:
    if text is not None:
        Path(name.partition(":")[0]).write_text(text)
    for _ in range(2):
        with pytest.raises(PluginError, match=complaint):
            load_plugins([name])
    assert not known_plugins()


def test_two_plugins_with_the_same_key_are_rejected() -> None:
    write("a.py")
    write("b.py")
    with pytest.raises(PluginError, match=r"the key words of b\.py:words is that of the metric a\.py:words"):
        load_plugins(["a.py", "b.py"])


def test_file_loaded_under_two_names_is_reported_as_one() -> None:
    write("acme_metrics.py")
    complaint = (
        r"the key words of acme_metrics:words is that of the metric acme_metrics\.py:words\. Both are of one file, "
        r"which came as acme_metrics\.py and as acme_metrics; name it in one way everywhere\."
    )
    with pytest.raises(PluginError, match=complaint):
        load_plugins(["acme_metrics.py", "acme_metrics"])


# --- installed packages ----------------------------------------------------------------------------------------------


def test_installed_plugins_are_loaded_with_the_first_config() -> None:
    write("acme_metrics.py")
    install("acme = acme_metrics")
    assert not registered_now()
    load_config()
    (plugin,) = known_plugins()
    digest = hashlib.sha256(Path("acme_metrics.py").read_bytes()).hexdigest()
    assert plugin_record(plugin, ["metric words"]) == {
        "name": "acme_metrics",
        "via": "entry point",
        "entry_point": "acme",
        "distribution": "acme-checks",
        "version": "1.2.0",
        "sha256": digest,
        "gives": ["metric words"],
    }


def test_installed_exporters_are_found_before_scoring() -> None:
    Path("acme_metrics.py").write_text(
        "from graphrag_eval_lc import register_exporter\n"
        'register_exporter(name="ids", file_name="ids.txt")(lambda run, path=None: path)\n'
    )
    install("acme = acme_metrics")
    assert exporter("ids").file_name == "ids.txt"
    assert list(exporters()) == ["report", "csv", "junit", "summary", "ids"]


def test_installed_plugins_are_discovered_once_per_process() -> None:
    load_installed_plugins()
    write("acme_metrics.py")
    install("acme = acme_metrics")
    load_installed_plugins()
    assert not registered_now()


def test_environment_variable_disables_installed_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    write("acme_metrics.py")
    install("acme = acme_metrics")
    monkeypatch.setenv(SWITCH, "1")
    load_config()
    assert not registered_now()


def test_loading_a_dataset_loads_no_plugins() -> None:
    write("acme_metrics.py")
    install("acme = acme_metrics")
    Path("qa.yaml").write_text("[]")
    load_dataset("qa.yaml")
    assert not registered_now()


@pytest.mark.parametrize(
    ("module", "cause"),
    [
        ("import absent_of_the_test", "ModuleNotFoundError: No module named 'absent_of_the_test'"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        (METRIC.replace("KEY", "micro"), "the key micro is one of the results' own, so that no metric can have it"),
    ],
)
def test_broken_plugin_is_reported_with_its_package_each_time(
    module: str, cause: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("acme_metrics.py").write_text(module)
    install("acme = acme_metrics")
    for _ in range(2):
        with pytest.raises(PluginError) as caught:
            load_config()
        assert str(caught.value) == (
            f"the plugin acme (acme_metrics) of the package acme-checks cannot be loaded, as {cause}. "
            f"Fix or uninstall the package, or set {SWITCH}=1 to do without the plugins of installed packages."
        )
    monkeypatch.setenv(SWITCH, "1")
    load_config()


# --- configuration ---------------------------------------------------------------------------------------------------


def test_config_loads_plugins_before_checking_other_keys() -> None:
    write("acme_metrics.py")
    assert load_config({"plugins": ["acme_metrics"]}).plugins == ["acme_metrics"]
    assert [plugin.via for plugin in known_plugins()] == ["config"]


def test_plugin_that_cannot_be_loaded_is_reported_with_its_location() -> None:
    Path("config.yaml").write_text("steps: {}\nplugins:\n- absent_of_the_test\n")
    with pytest.raises(ConfigError) as caught:
        load_config("config.yaml")
    assert str(caught.value) == (
        "config.yaml, line 3, key plugins.0: the plugin absent_of_the_test cannot be used, as the module "
        "absent_of_the_test was not found. Write package.module or path/to/file.py."
    )


@pytest.mark.parametrize("value", ["acme_metrics", [3], {"acme": "metrics"}])
def test_plugins_must_be_a_list_of_names(value: object) -> None:
    with pytest.raises(ConfigError, match="key plugins"):
        load_config({"plugins": value})


# --- records ---------------------------------------------------------------------------------------------------------


def test_file_is_recorded_with_its_digest() -> None:
    path = Path(write("acme_metrics.py"))
    (plugin,) = load_plugins(["acme_metrics.py"], via="--plugin")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert plugin_record(plugin, []) == {"name": "acme_metrics.py", "via": "--plugin", "sha256": digest, "gives": []}


def test_package_is_recorded_with_the_digest_of_all_files() -> None:
    write("acme/metrics.py")
    Path("acme/__init__.py").write_text("from acme import metrics")
    (plugin,) = load_plugins(["acme"])
    before = plugin_record(plugin, [])["sha256"]
    Path("acme/metrics.py").write_text(METRIC)
    assert plugin_record(plugin, [])["sha256"] != before


def test_only_used_plugins_are_recorded() -> None:
    load_plugins([write("a.py", "a_words"), write("b.py", "b_words")])

    @register_metric(key="own")
    def own(question: object, response: object) -> float:
        return 1.0

    used = {name: function for name, function in registered_now().items() if name != "metric a_words"}
    assert [(each["name"], each["via"], each["gives"]) for each in plugin_records(used)] == [
        ("b.py", "Python", ["metric b_words"]),
        (__name__, "Python", ["metric own"]),
    ]
