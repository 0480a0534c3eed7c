import inspect
from typing import Any

import pulumi_aws as aws
import pytest

from components.cluster import Cluster
from components.efa_node_group import EfaNodeGroup
from components.network import Network
from components.tags import resource_tags, without_cluster_ownership
from tests.unit.test_cluster import cluster_args
from tests.unit.test_efa_node_group import group_args
from tests.unit.test_network import new_vpc

TAGS = {"team": "ml"}


def takes_tags(typ: str) -> bool:
    _, module, name = typ.split(":")
    args: Any = getattr(getattr(aws, module.partition("/")[0]), f"{name}Args")
    return "tags" in inspect.signature(args.__init__).parameters


@pytest.mark.parametrize(
    "program",
    [
        lambda: Network("net", new_vpc(tags=TAGS)),
        lambda: Cluster("k8s", cluster_args(tags=TAGS)),
        lambda: EfaNodeGroup("gpu", group_args(tags=TAGS)),
    ],
    ids=["network", "cluster", "efa node group"],
)
def test_every_taggable_resource_carries_the_required_tags_and_the_users(deploy, program):
    recording = deploy(program)
    taggable = [it for it in recording.resources if it.typ.startswith("aws:") and takes_tags(it.typ)]
    assert taggable
    for resource in [*taggable, *recording.of_type("eks:index:Cluster")]:
        tags = resource.inputs.get("tags", {})
        wanted = {"Project": "ray-llm-eks", "Stack": "dev", "ManagedBy": "pulumi", "team": "ml"}
        assert wanted.items() <= tags.items(), resource.name


def test_a_user_cannot_hide_what_belongs_to_the_stack(deploy):
    recording = deploy(lambda: resource_tags({"Stack": "other", "Name": "mine"}, name="ours"))
    assert recording.result == {"Project": "ray-llm-eks", "Stack": "dev", "ManagedBy": "pulumi", "Name": "mine"}


def test_cluster_ownership_tags_are_dropped_and_no_other():
    tags = {"kubernetes.io/cluster/demo": "owned", "kubernetes.io/role/elb": "1"}
    assert without_cluster_ownership(tags) == {"kubernetes.io/role/elb": "1"}
