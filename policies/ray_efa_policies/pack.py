"""The policies of the pack: what each is called, says and asks, and the rule behind it."""

from collections.abc import Callable, Iterator
from typing import Final

from pulumi_policy import Policy, Severity

from . import efa_nodes, efa_requests, karpenter, nixl_backend, privileges, security_groups, zones
from .engine_groups import judged_groups
from .options import GROUP_SCHEMA, SECURITY_GROUP_SCHEMA, WORKER_SCHEMA, Options
from .policies import About, WorkerRule, stack_policies, worker_policies
from .report import Finding, unknown
from .scope import may_serve_kv_transfer, names_kv_transfer, of_workload, requests_efa
from .values import UNKNOWN
from .workloads import WorkerGroup, Workload

_EFA_GUIDE: Final = "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa.html"
_EKS_EFA_GUIDE: Final = "https://docs.aws.amazon.com/eks/latest/userguide/node-efa.html"
_NIXL_GUIDE: Final = "https://docs.vllm.ai/en/latest/features/nixl_connector_usage.html"

_Found = Iterator[tuple[str, Finding]]


def _each_worker(check: Callable[[WorkerGroup], list[Finding]], question: str) -> WorkerRule:
    """A rule on worker groups as a rule on workloads."""

    def rule(workload: Workload, options: Options, name: str) -> _Found | None:
        scope = of_workload(workload, options, name)
        if scope.reason:
            return _workers(workload, check, question)
        if scope.unknown:
            return iter([("", unknown(path, "Whether the workload uses EFA")) for path in scope.unknown])
        return None

    return rule


def _workers(workload: Workload, check: Callable[[WorkerGroup], list[Finding]], question: str) -> _Found:
    for group in judged_groups(workload):
        for finding in check(group):
            yield f"worker group '{group.name}'", finding
    for path in workload.unknown_paths:
        yield "", unknown(path, question)


def _nixl(workload: Workload, options: Options, name: str) -> _Found | None:
    scope = of_workload(workload, options, name)
    if scope.excluded:
        return None
    hidden = workload.serve_text is UNKNOWN and may_serve_kv_transfer(workload)
    judged = names_kv_transfer(workload) or requests_efa(workload) or options.includes(name)
    return iter([("", finding) for finding in nixl_backend.check(workload)]) if judged or hidden else None


POLICIES: list[Policy] = [
    *stack_policies(
        About(
            name="gpu-node-group-single-az",
            display_name="GPU node group in one Availability Zone",
            description="EFA traffic does not leave an Availability Zone, and a cluster placement group lies in one: all nodes "
            "of a GPU node group must stand in the same zone.",
            remediation_steps="Give the group one subnet: aws.eks.NodeGroup(..., subnet_ids=[gpu_subnet.id]). For Karpenter, "
            f"require {karpenter.ZONE_EXAMPLE}.",
            url=_EFA_GUIDE,
            schema=GROUP_SCHEMA,
        ),
        zones.check,
    ),
    *worker_policies(
        About(
            name="ray-worker-requests-efa",
            display_name="Ray workers request EFA",
            description="A worker that moves a KV cache must hold the EFA devices of its node: without one, libfabric and NIXL "
            "fall back to TCP and say nothing.",
            remediation_steps='On each worker\'s first container: "resources": {"limits": {"nvidia.com/gpu": "1", '
            '"vpc.amazonaws.com/efa": "1"}}, and the same in requests.',
            url=_EKS_EFA_GUIDE,
            schema=WORKER_SCHEMA,
        ),
        _each_worker(efa_requests.check, "Whether every worker requests EFA"),
    ),
    *worker_policies(
        About(
            name="ray-worker-privileged",
            display_name="Ray workers are privileged and root",
            description="NIXL registers GPU memory with the EFA device, which needs a privileged container that runs as root; "
            "the head, init containers and sidecars need neither.",
            remediation_steps='On each worker\'s first container: "securityContext": {"privileged": True, "runAsUser": 0}.',
            url=_EKS_EFA_GUIDE,
            schema=WORKER_SCHEMA,
        ),
        _each_worker(privileges.check, "Whether every worker is privileged"),
    ),
    *worker_policies(
        About(
            name="nixl-backend-libfabric",
            display_name="NIXL takes LIBFABRIC on both roles",
            description="vLLM's NixlConnector takes UCX over TCP unless both roles name the backend LIBFABRIC, and libfabric "
            "takes TCP unless every worker sets FI_PROVIDER=efa; neither says anything.",
            remediation_steps='On both roles: "kv_transfer_config": {"kv_connector": "NixlConnector", '
            '"kv_connector_extra_config": {"backends": ["LIBFABRIC"]}}. On each worker: '
            '{"name": "FI_PROVIDER", "value": "efa"}.',
            url=_NIXL_GUIDE,
            schema=WORKER_SCHEMA,
            severity=Severity.CRITICAL,
        ),
        _nixl,
    ),
    *stack_policies(
        About(
            name="efa-security-group-self-reference",
            display_name="EFA interfaces have a self-referencing security group",
            description="EFA traffic matches a security group, never an address range: a group on every EFA interface must allow "
            "all traffic from itself and to itself.",
            remediation_steps="aws.vpc.SecurityGroupIngressRule(..., security_group_id=group.id, "
            'referenced_security_group_id=group.id, ip_protocol="-1"), and the same as aws.vpc.SecurityGroupEgressRule.',
            url=_EFA_GUIDE,
            schema=SECURITY_GROUP_SCHEMA,
        ),
        security_groups.check,
    ),
    *stack_policies(
        About(
            name="ray-worker-on-efa-nodes",
            display_name="Ray workers on EFA nodes use EFA",
            description="A Ray worker that selects the nodes of an EFA node group by their labels must request EFA and be "
            "privileged, like any other worker on EFA.",
            remediation_steps="See ray-worker-requests-efa and ray-worker-privileged, or select other nodes.",
            url=_EKS_EFA_GUIDE,
            schema=WORKER_SCHEMA,
        ),
        efa_nodes.check,
    ),
]
