"""One compliant stack, as small as the policies see it: each test takes it and breaks one thing."""

import copy
from typing import Any

import yaml

from tests.policies.analyzer import UNKNOWN, Resource

EFA = "vpc.amazonaws.com/efa"


def transfer(role: str) -> dict[str, Any]:
    """A compliant kv_transfer_config."""
    return {
        "kv_connector": "NixlConnector",
        "kv_role": role,
        "kv_connector_extra_config": {"backends": ["LIBFABRIC"]},
    }


def llm_config(role: str) -> dict[str, Any]:
    """A compliant LLMConfig of one role."""
    return {
        "model_loading_config": {"model_id": "m", "model_source": "org/m"},
        "engine_kwargs": {"tensor_parallel_size": 1, "kv_transfer_config": transfer(role)},
        "deployment_config": {"num_replicas": 1},
    }


def serve_tree() -> dict[str, Any]:
    """A compliant prefill/decode Serve configuration."""
    return {
        "applications": [
            {
                "name": "llm",
                "route_prefix": "/",
                "import_path": "ray.serve.llm:build_pd_openai_app",
                "args": {"prefill_config": llm_config("kv_producer"), "decode_config": llm_config("kv_consumer")},
            }
        ]
    }


def worker(name: str) -> dict[str, Any]:
    """A compliant worker group."""
    return {
        "groupName": name,
        "replicas": 1,
        "rayStartParams": {"num-gpus": "1"},
        "template": {
            "spec": {
                "nodeSelector": {"pool": "gpu"},
                "containers": [
                    {
                        "name": "ray-worker",
                        "image": UNKNOWN,
                        "env": [{"name": "FI_PROVIDER", "value": "efa"}],
                        "resources": {
                            "limits": {"cpu": "24", "nvidia.com/gpu": 1, EFA: 1},
                            "requests": {"cpu": "24", "nvidia.com/gpu": 1, EFA: 1},
                        },
                        "securityContext": {"privileged": True, "runAsUser": 0},
                    }
                ],
            }
        },
    }


def head() -> dict[str, Any]:
    """A CPU-only head."""
    resources = {"limits": {"cpu": "2", "memory": "12Gi"}}
    return {
        "rayStartParams": {"num-cpus": "0"},
        "template": {"spec": {"containers": [{"name": "ray-head", "image": UNKNOWN, "resources": resources}]}},
    }


def ray_service(tree: Any = None, version: str = "v1", **spec: Any) -> Resource:
    """A compliant RayService; ``tree`` replaces its Serve configuration, ``spec`` its top-level fields."""
    cluster = {"headGroupSpec": head(), "workerGroupSpecs": [worker("prefill"), worker("decode")]}
    return Resource(
        f"kubernetes:ray.io/{version}:RayService",
        "service",
        {
            "apiVersion": f"ray.io/{version}",
            "kind": "RayService",
            "metadata": {"name": "ray-llm", "namespace": "inference"},
            "spec": {
                "serveConfigV2": yaml.safe_dump(tree if tree is not None else serve_tree()),
                "rayClusterConfig": cluster,
                **spec,
            },
        },
    )


def workers(service: Resource) -> list[Any]:
    """The worker groups of a RayService, to be changed."""
    return service.props["spec"]["rayClusterConfig"]["workerGroupSpecs"]


def container(service: Resource, group: int) -> dict[str, Any]:
    """The Ray container of a worker group, to be changed."""
    return workers(service)[group]["template"]["spec"]["containers"][0]


def subnet(name: str, zone: str | None) -> Resource:
    """A private subnet; without a zone it is left to AWS."""
    zoned = {} if zone is None else {"availabilityZone": zone}
    return Resource("aws:ec2/subnet:Subnet", name, {"vpcId": UNKNOWN, "cidrBlock": "10.0.0.0/20", **zoned})


def security_group(**inline: Any) -> Resource:
    """An EFA security group without rules of its own, or with inline ones."""
    return Resource("aws:ec2/securityGroup:SecurityGroup", "efa", {"vpcId": UNKNOWN, **inline})


def rule(direction: str, group: Resource, **changes: Any) -> Resource:
    """A self-referencing rule of the newer kind."""
    kind = f"SecurityGroup{direction.capitalize()}Rule"
    return Resource(
        f"aws:vpc/securityGroup{direction.capitalize()}Rule:{kind}",
        f"efa-{direction}",
        {"securityGroupId": UNKNOWN, "referencedSecurityGroupId": UNKNOWN, "ipProtocol": "-1", **changes},
        {"securityGroupId": [group], "referencedSecurityGroupId": [group]},
    )


def launch_template(groups: list[Resource], interfaces: int = 1) -> Resource:
    """A template whose EFA interfaces all carry the same groups."""
    interface = {
        "networkCardIndex": 0,
        "deviceIndex": 0,
        "interfaceType": "efa",
        "securityGroups": [UNKNOWN] * len(groups),
    }
    return Resource(
        "aws:ec2/launchTemplate:LaunchTemplate",
        "gpu-template",
        {"networkInterfaces": [copy.deepcopy(interface) for _ in range(interfaces)]},
        {"networkInterfaces": groups},
    )


def node_group(subnets: list[Resource], template: Resource | None = None, name: str = "gpu", **props: Any) -> Resource:
    """A GPU node group."""
    defaults: dict[str, Any] = {"clusterName": UNKNOWN, "subnetIds": [UNKNOWN] * len(subnets), "nodeRoleArn": UNKNOWN}
    sources = {"subnetIds": subnets}
    if template:
        defaults |= {"launchTemplate": {"id": UNKNOWN, "version": UNKNOWN}}
        sources |= {"launchTemplate": [template]}
    gpu = {"amiType": "AL2023_x86_64_NVIDIA", "instanceTypes": ["g6.8xlarge"], "labels": {"pool": "gpu"}}
    return Resource("aws:eks/nodeGroup:NodeGroup", name, {**defaults, **gpu, **props}, sources)


def cpu_group(subnets: list[Resource], **props: Any) -> Resource:
    """A node group that sets no instance type and no AMI type: EKS fills in CPU ones."""
    base = {"clusterName": UNKNOWN, "subnetIds": [UNKNOWN] * len(subnets), "nodeRoleArn": UNKNOWN}
    return Resource("aws:eks/nodeGroup:NodeGroup", "system", {**base, **props}, {"subnetIds": subnets})


def compliant() -> list[Resource]:
    """Network, node groups, security group with its rules, and the service."""
    zone_a, zone_b = subnet("a", "us-east-1a"), subnet("b", "us-east-1b")
    group = security_group()
    template = launch_template([group])
    return [
        zone_a,
        zone_b,
        group,
        rule("ingress", group),
        rule("egress", group),
        template,
        cpu_group([zone_a, zone_b]),
        node_group([zone_a], template),
        ray_service(),
    ]
