"""What goes wrong in Kubernetes: rows of docs/faults.md, each met by ``make test-cluster``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

_IMAGE: Final = "ray-llm-eks:service.image"


@dataclass(frozen=True)
class ClusterFault:
    """One row.

    Attributes:
        option: What ``--fault`` takes.
        meaning: What happens.
        says: What the user reads, as parts of the engine's output; nothing where the run goes through.
        says_in_words: The same for the table.
        look: What says more, as a command.
        shows: What that shows, as the test finds it in the cluster.
        next_step: What to do.
        command: ``up`` or ``destroy``.
        config: What makes the run meet it, where the stack is up already.
    """

    option: str
    meaning: str
    says: Sequence[str]
    says_in_words: str
    look: str
    shows: str
    next_step: str
    command: str = "up"
    config: Mapping[str, str] = field(default_factory=dict)


OPERATOR_MISSING: Final = ClusterFault(
    option="operator-missing",
    meaning="the operator's image cannot be pulled, or its pod finds no node",
    says=["kuberay-operator failed, and has been uninstalled due to atomic being set: context deadline exceeded"],
    says_in_words="`release kuberay-operator failed, and has been uninstalled`, after `addons.timeoutMinutes`",
    look="kubectl -n kuberay-system get events",
    shows="ImagePullBackOff",
    next_step="give the nodes a way to the registry, or the chart an image of yours; then `pulumi up`",
)
APPLICATION_FAILS: Final = ClusterFault(
    option="application-fails",
    meaning="Serve cannot deploy the application: an engine setting, a model that does not load, too little memory",
    says=["ray-service", "timed out waiting for the condition"],
    says_in_words="`timed out waiting for the condition`, after `service.readyTimeoutMinutes`",
    look="kubectl -n inference get rayservice ray-llm -o yaml",
    shows="DEPLOY_FAILED",
    next_step="read the message in its status, and the `worker-*.err` files under `/tmp/ray/session_latest/logs` of the worker; "
    "mend the setting, then `pulumi up`",
)
WORKER_NEVER_READY: Final = ClusterFault(
    option="worker-never-ready",
    meaning="a worker starts and does not become Ready",
    says=["ray-service", "timed out waiting for the condition"],
    says_in_words="the same",
    look="kubectl -n inference get events",
    shows="Readiness probe failed",
    next_step="read the pod's log and the files of the row above; mend what they name, then `pulumi up`",
    config={_IMAGE: "registry.example/ray-llm:v2"},
)
API_SERVER_RESTART: Final = ClusterFault(
    option="api-server-restart",
    meaning="the API server is away for some seconds in the middle, as in an update of the control plane",
    says=[],
    says_in_words="nothing: Pulumi and KubeRay try again",
    look="",
    shows="",
    next_step="nothing; if it was away for minutes and a resource failed, `pulumi up`",
    config={_IMAGE: "registry.example/ray-llm:v3"},
)
NAMESPACE_TERMINATING: Final = ClusterFault(
    option="namespace-terminating",
    meaning="something in a namespace has a finalizer that nobody takes off, so the namespace hangs in Terminating",
    says=["namespace", "finalizers might be preventing deletion", "timed out waiting for the condition"],
    says_in_words="`finalizers might be preventing deletion`, then `timed out waiting for the condition`",
    look="kubectl get namespace inference -o jsonpath='{.status.conditions}'",
    shows="SomeFinalizersRemain",
    next_step="let the controller that is named run again, or take its finalizer off the object; then `pulumi destroy`",
    command="destroy",
)

CLUSTER_FAULTS: Final[Sequence[ClusterFault]] = (
    OPERATOR_MISSING,
    APPLICATION_FAILS,
    WORKER_NEVER_READY,
    API_SERVER_RESTART,
    NAMESPACE_TERMINATING,
)
