"""The recorded charts: what Helm would refuse, what their templates honour, and the web that serves them."""

import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import requests
import yaml

from components import versions
from components.addon_values import (
    efa_device_plugin_values,
    kuberay_crd_urls,
    kuberay_operator_values,
    nvidia_device_plugin_values,
)
from sandbox.charts import render
from sandbox.charts.record import RECORDED
from sandbox.charts.web import ChartWeb

OURS: Mapping[str, Mapping[str, Any]] = {
    "kuberay-operator": kuberay_operator_values(),
    "nvidia-device-plugin": nvidia_device_plugin_values(),
    "aws-efa-k8s-device-plugin": efa_device_plugin_values("g6.8xlarge", "us-east-1"),
}


def refusals(chart: str, values: Mapping[str, Any]) -> list[str]:
    """What Helm says: it lays values over the defaults and judges the whole by values.schema.json."""
    found = render.charts()[chart]
    judge = jsonschema.Draft7Validator(found.schema)
    return [one.message for one in judge.iter_errors(laid_over(found.values, values))]


def laid_over(defaults: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(defaults)
    for key, value in values.items():
        before = merged.get(key)
        merged[key] = laid_over(before, value) if isinstance(before, dict) and isinstance(value, dict) else value
    return merged


@pytest.mark.parametrize("pin", [versions.KUBERAY_OPERATOR, versions.NVIDIA_DEVICE_PLUGIN, versions.EFA_DEVICE_PLUGIN])
def test_what_is_recorded_is_what_is_pinned(pin: versions.ChartPin) -> None:
    assert render.charts()[pin.chart].version == pin.version


def test_each_recorded_value_says_where_it_stands() -> None:
    for chart in json.loads(RECORDED.read_text()).values():
        assert chart.keys() == {"repository", "tag", "folder", "version", "appVersion", "values"}
        lines = [one["line"] for one in chart["values"]]
        assert lines == sorted(set(lines))


@pytest.mark.parametrize("chart", OURS)
def test_the_programs_values_are_accepted_and_reach_the_template(chart: str) -> None:
    assert refusals(chart, OURS[chart]) == []
    for key in OURS[chart]:
        assert f".Values.{key}" in render._TEMPLATES[chart]  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize("chart", OURS)
def test_what_is_said_to_be_honoured_is_in_the_template(chart: str) -> None:
    for key in render._HONOURED[chart]:  # pyright: ignore[reportPrivateUsage]
        assert f".Values.{key}" in render._TEMPLATES[chart], key  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize(
    ("chart", "values", "said"),
    [
        ("kuberay-operator", {"nodeSelectr": {}}, "'nodeSelectr' was unexpected"),
        ("aws-efa-k8s-device-plugin", {"image": {"repo": "x"}}, "'repo' was unexpected"),
        ("kuberay-operator", {"singleNamespaceInstall": True}, "False was expected"),
        ("nvidia-device-plugin", {"gfd": {"enabled": True}}, "False was expected"),
    ],
)
def test_an_unrecorded_key_and_a_value_without_effect_are_refused(
    chart: str, values: Mapping[str, Any], said: str
) -> None:
    (refusal,) = refusals(chart, values)
    assert said in refusal


def test_the_web_serves_charts_and_crds_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "ray.io_rayclusters.yaml").write_text("kind: CustomResourceDefinition\n")
    with ChartWeb(tmp_path) as web:

        def get(url: str) -> requests.Response:
            proxies = {"https": web.environment["HTTPS_PROXY"]}
            return requests.get(url, proxies=proxies, verify=web.environment["SSL_CERT_FILE"], timeout=10)

        for pin in (versions.KUBERAY_OPERATOR, versions.NVIDIA_DEVICE_PLUGIN, versions.EFA_DEVICE_PLUGIN):
            index = yaml.safe_load(get(f"{pin.repository.rstrip('/')}/index.yaml").content)
            (entry,) = index["entries"][pin.chart]
            assert entry["version"] == pin.version
            packed = get(entry["urls"][0]).content
            with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
                names = archive.getnames()
            assert f"{pin.chart}/values.schema.json" in names
            assert f"{pin.chart}/templates/all.yaml" in names
        url = next(one for one in kuberay_crd_urls(versions.KUBERAY_OPERATOR.version) if "rayclusters" in one)
        assert get(url).content == b"kind: CustomResourceDefinition\n"
        assert get("https://nvidia.github.io/k8s-device-plugin/nvidia-device-plugin-0.1.0.tgz").status_code == 404
        with pytest.raises(requests.exceptions.ProxyError, match="the sandbox has no way to example\\.com"):
            get("https://example.com/")
