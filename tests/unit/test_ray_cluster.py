import re
from collections.abc import Iterator
from typing import Any

from components.choices import UpgradeStrategy
from components.ray_cluster import MAX_WORKERS_PER_ROLE, ray_cluster_config, replace_paths
from components.serve_app import Role

HEAD = {"spec": {"containers": [{"name": "ray-head", "image": "ray:1"}]}}
WORKER = {"spec": {"tolerations": [{"operator": "Exists"}], "containers": [{"name": "ray-worker", "image": "ray:1"}]}}

Path = tuple[str | int, ...]


def config(decode_replicas: int = 1) -> dict[str, Any]:
    return ray_cluster_config("2.58.0", HEAD, WORKER, 1, {Role.PREFILL: 1, Role.DECODE: decode_replicas})


def groups() -> dict[str, dict[str, Any]]:
    return {group["groupName"]: group for group in config(decode_replicas=2)["workerGroupSpecs"]}


def leaves(value: Any, path: Path = ()) -> Iterator[Path]:
    if isinstance(value, dict):
        for key, member in value.items():
            yield from leaves(member, (*path, key))
    elif isinstance(value, list):
        for index, member in enumerate(value):
            yield from leaves(member, (*path, index))
    else:
        yield path


def parse(path: str) -> Path:
    """A property path as the engine reads it; its ``[*]`` matches any index."""
    return tuple(part.strip("[]") for part in re.findall(r"[^.\[\]]+|\[\*\]", path))


def replaces(paths: list[str], changed: Path) -> bool:
    """The engine's rule: a change replaces when one of the paths is a beginning of where it is."""
    return any(
        len(path) <= len(changed) and all(want in ("*", have) for want, have in zip(path, changed, strict=False))
        for path in map(parse, paths)
    )


def test_each_role_has_a_worker_group_of_its_own() -> None:
    assert {name: group["replicas"] for name, group in groups().items()} == {"prefill": 1, "decode": 2}


def test_a_group_offers_the_resource_by_which_its_role_finds_it() -> None:
    parameters = {name: group["rayStartParams"] for name, group in groups().items()}
    assert parameters == {
        "prefill": {"num-gpus": "1", "resources": "'{\"prefill\": 1}'"},
        "decode": {"num-gpus": "1", "resources": "'{\"decode\": 1}'"},
    }


def test_the_resource_of_a_group_is_read_the_same_by_kuberay_and_by_rays_autoscaler() -> None:
    text = groups()["decode"]["rayStartParams"]["resources"]
    # KubeRay trims single quotes, the autoscaler drops the first and the last character.
    assert text.strip("'") == text[1:-1] == '{"decode": 1}'
    assert "\\" not in text


def test_the_autoscaler_may_grow_a_role_far_and_never_empties_it() -> None:
    assert {(group["minReplicas"], group["maxReplicas"]) for group in groups().values()} == {(1, MAX_WORKERS_PER_ROLE)}
    assert config()["enableInTreeAutoscaling"] is True
    assert config()["autoscalerOptions"]["version"] == "v2"


def test_the_bounds_of_a_group_do_not_depend_on_the_replicas() -> None:
    one, three = config(1)["workerGroupSpecs"][1], config(3)["workerGroupSpecs"][1]
    assert {**one, "replicas": None} == {**three, "replicas": None}


def test_the_head_takes_no_work_and_stays_inside_the_cluster() -> None:
    head = config()["headGroupSpec"]
    assert head["rayStartParams"] == {"num-cpus": "0", "num-gpus": "0"}
    assert (head["serviceType"], head["enableIngress"]) == ("ClusterIP", False)


def test_the_dashboard_asks_for_a_token() -> None:
    assert config()["authOptions"] == {"mode": "token"}


def test_the_heads_state_is_kept_in_no_redis() -> None:
    assert "gcsFaultToleranceOptions" not in config()


def test_the_groups_share_no_object() -> None:
    prefill, decode = config()["workerGroupSpecs"]
    prefill["template"]["spec"]["containers"][0]["image"] = "other"
    assert decode["template"]["spec"]["containers"][0]["image"] == "ray:1"
    assert WORKER["spec"]["containers"][0]["image"] == "ray:1"


def test_whatever_kuberay_would_ignore_replaces_the_service() -> None:
    paths = replace_paths(UpgradeStrategy.NONE)
    kept = {path for path in leaves({"spec": {"rayClusterConfig": config()}}) if not replaces(paths, path)}
    assert kept == {("spec", "rayClusterConfig", "workerGroupSpecs", index, "replicas") for index in (0, 1)}


def test_what_kuberay_takes_over_by_itself_never_replaces_the_service() -> None:
    paths = replace_paths(UpgradeStrategy.NONE)
    live: list[Path] = [
        ("spec", "serveConfigV2"),
        ("spec", "upgradeStrategy", "type"),
        ("spec", "excludeHeadPodFromServeSvc"),
        ("spec", "rayClusterConfig", "workerGroupSpecs", 1, "replicas"),
        ("spec", "rayClusterConfig", "workerGroupSpecs", 2),
        ("metadata", "labels", "team"),
    ]
    assert [path for path in live if replaces(paths, path)] == []


def test_a_second_cluster_takes_over_all_but_what_kuberays_hash_leaves_out() -> None:
    paths = replace_paths(UpgradeStrategy.NEW_CLUSTER)
    changed = {path[3:] for path in leaves({"spec": {"rayClusterConfig": config()}}) if replaces(paths, path)}
    assert changed == {
        (index, *rest)
        for index in (0, 1)
        for rest in (("minReplicas",), ("maxReplicas",), ("template", "spec", "tolerations", 0, "operator"))
    }
    assert replaces(paths, ("spec", "rayClusterConfig", "headGroupSpec", "template", "spec", "tolerations"))
