"""What EKS itself runs in every cluster, with its requests: they take their share of the nodes."""

from typing import Any, Final

from sandbox.cluster.api import Api, Refusal

_NAMESPACE: Final = "kube-system"
_TOLERATES_ALL: Final = [{"operator": "Exists"}]
_TOLERATES_CRITICAL: Final = [{"key": "CriticalAddonsOnly", "operator": "Exists"}]


def install(api: Api) -> None:
    """Makes aws-node, kube-proxy and CoreDNS where they are missing, and waits for none of them.

    Read in aws/amazon-vpc-cni-k8s, charts/aws-vpc-cni/values.yaml (25m for the CNI, and as much for its network policy agent), and
    in the EKS user guide's manifests of kube-proxy (100m) and CoreDNS (100m and 70Mi, limited to 170Mi, two replicas; it stays off
    nodes with a taint of anybody's own). Their images are never pulled.
    """
    cni = [_container("aws-node", "amazon-k8s-cni", cpu="25m")]
    agent = [_container("aws-eks-nodeagent", "amazon/aws-network-policy-agent", cpu="25m")]
    _make(api, "DaemonSet", "aws-node", {"k8s-app": "aws-node"}, cni + agent)
    proxy = [_container("kube-proxy", "eks/kube-proxy", cpu="100m")]
    _make(api, "DaemonSet", "kube-proxy", {"k8s-app": "kube-proxy"}, proxy)
    dns = [_container("coredns", "eks/coredns", cpu="100m", memory="70Mi")]
    dns[0]["resources"]["limits"] = {"memory": "170Mi"}
    _make(api, "Deployment", "coredns", {"k8s-app": "kube-dns", "eks.amazonaws.com/component": "coredns"}, dns)


def _container(name: str, image: str, **requests: str) -> dict[str, Any]:
    return {"name": name, "image": image, "resources": {"requests": requests}}


def _make(api: Api, kind: str, name: str, labels: dict[str, str], containers: list[dict[str, Any]]) -> None:
    on_every_node = kind == "DaemonSet"
    pod = {
        "containers": containers,
        "hostNetwork": on_every_node,
        "priorityClassName": "system-node-critical" if on_every_node else "system-cluster-critical",
        "tolerations": _TOLERATES_ALL if on_every_node else _TOLERATES_CRITICAL,
    }
    document = {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": _NAMESPACE, "labels": labels},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
            **({} if on_every_node else {"replicas": 2}),
        },
    }
    try:
        api.create(f"/apis/apps/v1/namespaces/{_NAMESPACE}/{kind.lower()}s", document)
    except Refusal as refusal:
        # It was there before this control plane stopped and started again.
        if refusal.status != 409:
            raise
