"""Is each Ray worker's container privileged and root?

IPC_LOCK is not enough: memlock comes from containerd, the capability works for root only, and NIXL registers GPU memory
with the adapter, which fails even then (NVIDIA/nvidia-container-toolkit#2037, awslabs/awsome-distributed-ai#647).
"""

from typing import Final

from .report import Finding, unknown
from .values import UNKNOWN, at, is_true, sequence, shown
from .workloads import WorkerGroup

_FIX_PRIVILEGED: Final = 'Write securityContext {"privileged": true, "runAsUser": 0} on this container.'
_WHY_ROOT: Final = (
    "A process that is not root has no locked memory and no access to /dev/infiniband, so that memory registration "
    "fails or NIXL falls back to TCP, even in a privileged container."
)


def check(group: WorkerGroup) -> list[Finding]:
    """Faults of one worker group that is in scope; only the Ray container and the pod's defaults for it count."""
    container, path = group.container, group.container_path
    context_path = f"{path}.securityContext"
    for value, where in ((container, path), (at(container, "securityContext"), context_path)):
        if value is UNKNOWN:
            return [unknown(where, "Whether the worker is privileged")]
    return [*_privileged(container, context_path), *_root(group, context_path), *_user_namespace(group)]


def _privileged(container: object, path: str) -> list[Finding]:
    value = at(container, "securityContext", "privileged")
    if value is UNKNOWN:
        return [unknown(f"{path}.privileged", "Whether the worker is privileged")]
    if is_true(value):
        return []
    capabilities = sequence(at(container, "securityContext", "capabilities", "add"))
    if "IPC_LOCK" in capabilities:
        return [
            Finding(
                f"{path}.privileged",
                f"{shown(value)} and only the capability IPC_LOCK is added",
                "IPC_LOCK alone does not let NIXL register GPU memory with the EFA device: it lifts no memlock limit "
                "that containerd sets and opens no device.",
                _FIX_PRIVILEGED,
            )
        ]
    return [
        Finding(
            f"{path}.privileged",
            shown(value),
            "NIXL cannot register GPU memory with the EFA device, and the transfer fails or falls back to TCP.",
            _FIX_PRIVILEGED,
        )
    ]


def _user_namespace(group: WorkerGroup) -> list[Finding]:
    """A user namespace maps the container's root to a user of no rights on the node."""
    value, path = at(group.pod, "hostUsers"), f"{group.pod_path}.hostUsers"
    if value is UNKNOWN and at(group.pod) is not UNKNOWN:
        return [unknown(path, "Whether the worker's root is the node's root")]
    if value is False or value == "false":
        return [Finding(path, shown(value), f"Root is then nobody on the node. {_WHY_ROOT}", "Leave hostUsers out.")]
    return []


def _root(group: WorkerGroup, context_path: str) -> list[Finding]:
    """The container's own setting wins over the pod's, field by field, as in Kubernetes."""
    pod_path = f"{group.pod_path}.securityContext"
    findings: list[Finding] = []
    for field, allowed in (("runAsUser", (0, "0")), ("runAsNonRoot", (False, "false"))):
        own = at(group.container, "securityContext", field)
        value, where = (own, context_path) if own is not None else (at(group.pod, "securityContext", field), pod_path)
        if value is UNKNOWN:
            whole = where == pod_path and at(group.pod, "securityContext") is UNKNOWN
            findings.append(unknown(pod_path if whole else f"{where}.{field}", "Whether the worker runs as root"))
        elif value is not None and value not in allowed:
            fix = "Write 0 there for the Ray container." if field == "runAsUser" else "Leave it out, or write false."
            findings.append(Finding(f"{where}.{field}", shown(value), _WHY_ROOT, fix))
    unique = {finding.path: finding for finding in findings}
    return list(unique.values())
