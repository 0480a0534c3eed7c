"""What EKS itself runs in every cluster, with its requests: they take their share of the nodes."""

from typing import Any, Final

from sandbox.cluster.api import Api, Refusal

_NAMESPACE: Final = "kube-system"
_ANYWHERE: Final = [{"operator": "Exists"}]
# Requests: EKS add-ons vpc-cni (two containers), kube-proxy and coredns, by `aws eks describe-addon-configuration`'s defaults.
_DAEMONS: Final = {"aws-node": "50m", "kube-proxy": "100m"}


def install(api: Api) -> None:
    """Makes aws-node, kube-proxy and CoreDNS where they are missing, and waits for none of them."""
    for name, cpu in _DAEMONS.items():
        _make(api, "daemonsets", _workload("DaemonSet", name, {"cpu": cpu}, _ANYWHERE))
    # CoreDNS tolerates a node that is kept for critical add-ons, and no other taint.
    critical = [{"key": "CriticalAddonsOnly", "operator": "Exists"}]
    dns = _workload("Deployment", "coredns", {"cpu": "100m", "memory": "70Mi"}, critical)
    dns["spec"]["replicas"] = 2
    _make(api, "deployments", dns)


def _make(api: Api, plural: str, document: dict[str, Any]) -> None:
    try:
        api.create(f"/apis/apps/v1/namespaces/{_NAMESPACE}/{plural}", document)
    except Refusal as refusal:
        if refusal.status != 409:
            raise


def _workload(kind: str, name: str, requests: dict[str, str], tolerations: list[dict[str, str]]) -> dict[str, Any]:
    labels = {"k8s-app": name}
    container = {"name": name, "image": f"eks/{name}", "resources": {"requests": requests}}
    pod = {"containers": [container], "tolerations": tolerations, "priorityClassName": "system-cluster-critical"}
    if kind == "DaemonSet":
        pod |= {"priorityClassName": "system-node-critical", "hostNetwork": True}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": _NAMESPACE, "labels": {"eks.amazonaws.com/component": name}},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }
