"""The prefill/decode service: one KubeRay ``RayService`` and what it needs around it."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, NotRequired, TypedDict

import pulumi
import pulumi_kubernetes as kubernetes

from components import PACKAGE
from components.choices import UpgradeStrategy
from components.defaults import READY_TIMEOUT_MINUTES
from components.faults import StackFaults
from components.pods import (
    HUGGING_FACE_TOKEN_KEY,
    METRICS_PORT,
    SERVE_PORT,
    WorkerArgs,
    head_pod_template,
    worker_pod_template,
)
from components.ray_cluster import MAX_WORKERS_PER_ROLE, ray_cluster_config, replace_paths
from components.serve_app import (
    ModelArgs,
    Role,
    RoleArgs,
    check_engine_kwargs,
    render_serve_config,
    replica_fault,
    serve_config,
)

_DELETE_TIMEOUT: Final = "15m"


class ServiceSuffix(StrEnum):
    """Fixed endings of the names of what stands around the RayService."""

    HEAD_ACCOUNT = "head"
    WORKER_ACCOUNT = "worker"
    TOKEN = "hugging-face"
    NETWORK_POLICY = "ray-pods"


class PrefillDecodeServiceArgs(TypedDict):
    """What the service is made of: plain values, so that a first preview and its policies see all of it."""

    name: str
    """Name of the RayService and of its application, at most 47 characters."""
    namespace: str
    """Namespace that is made for the service; it permits privileged pods, so nothing else should live there."""
    operator_namespace: str
    """Namespace of the KubeRay operator, which has to reach the head's dashboard."""
    image: str
    """Image of every Ray container, tag included."""
    ray_version: str
    """Ray's version in that image. From 2.52 on, for token authentication."""
    model: ModelArgs
    """The model and how the engines run it."""
    prefill: RoleArgs
    """The prefill replicas."""
    decode: RoleArgs
    """The decode replicas."""
    gpus: int
    """GPUs of the GPU nodes' instance type."""
    efa_interfaces: int
    """EFA devices of the GPU nodes' instance type."""
    worker: WorkerArgs
    """CPU, memory and shared memory of a worker."""
    accelerator_type: NotRequired[str]
    """Ray's name of the GPU, such as ``L4``; left out, replicas find their workers by role alone."""
    upgrade_strategy: NotRequired[UpgradeStrategy]
    """What a change of the cluster does. Default: ``None``, Pulumi replaces the service."""
    ready_timeout_minutes: NotRequired[int]
    """How long to wait until the applications run. Default: 60. 0 does not wait at all."""
    hugging_face_token: NotRequired[pulumi.Input[str]]
    """Token for gated models. It is kept in a Kubernetes Secret and read when a pod starts."""
    labels: NotRequired[dict[str, str]]
    """Labels of every Kubernetes object made here."""


class PrefillDecodeService(pulumi.ComponentResource):
    """A model served by prefill and decode engines on different GPU nodes, behind one OpenAI-compatible endpoint.

    The caller's ``depends_on`` is handed on to the RayService: it must hold the operator's release (with its CRDs), both
    device plugins and the GPU node group, so that pods find their devices and so that a destroy takes the service first.
    Provider and parent come by the usual options.
    """

    endpoint: pulumi.Output[str]
    """Base URL of the OpenAI-compatible API, inside the cluster."""
    model_id: pulumi.Output[str]
    """The model's name in requests."""
    ray_service: kubernetes.apiextensions.CustomResource
    """The RayService itself, for whatever must come after it."""

    def __init__(self, name: str, args: PrefillDecodeServiceArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        """Makes the namespace, the accounts, the network policy, the token's Secret and the RayService.

        Raises:
            StackFaults: If the arguments do not fit together.
        """
        if faults := check_service(args):
            raise StackFaults(faults)
        super().__init__(f"{PACKAGE}:index:PrefillDecodeService", name, None, opts)
        labels = args.get("labels", {})

        namespace = kubernetes.core.v1.Namespace(
            f"{name}-namespace",
            metadata={
                "name": args["namespace"],
                # Workers are privileged; the namespace says so to pod security admission.
                "labels": {**labels, "pod-security.kubernetes.io/enforce": "privileged"},
            },
            opts=pulumi.ResourceOptions(parent=self),
        )

        def metadata(suffix: ServiceSuffix) -> kubernetes.meta.v1.ObjectMetaArgs:
            return kubernetes.meta.v1.ObjectMetaArgs(
                name=object_name(args["name"], suffix), namespace=args["namespace"], labels=labels or None
            )

        in_namespace = pulumi.ResourceOptions(parent=self, depends_on=[namespace])
        around: list[pulumi.Resource] = [
            kubernetes.core.v1.ServiceAccount(
                f"{name}-{suffix}-account",
                metadata=metadata(suffix),
                # Each pod says for itself whether it needs the token.
                automount_service_account_token=False,
                opts=in_namespace,
            )
            for suffix in (ServiceSuffix.HEAD_ACCOUNT, ServiceSuffix.WORKER_ACCOUNT)
        ]
        around.append(
            kubernetes.networking.v1.NetworkPolicy(
                f"{name}-network-policy",
                metadata=metadata(ServiceSuffix.NETWORK_POLICY),
                spec=_network_policy_spec(args["operator_namespace"]),
                opts=in_namespace,
            )
        )
        if (token := args.get("hugging_face_token")) is not None:
            around.append(
                kubernetes.core.v1.Secret(
                    f"{name}-hugging-face-token",
                    metadata=metadata(ServiceSuffix.TOKEN),
                    string_data={HUGGING_FACE_TOKEN_KEY: pulumi.Output.secret(token)},
                    opts=in_namespace,
                )
            )

        minutes = args.get("ready_timeout_minutes", READY_TIMEOUT_MINUTES)
        timeout = f"{minutes}m" if minutes else None
        self.ray_service = kubernetes.apiextensions.CustomResource(
            f"{name}-ray-service",
            api_version="ray.io/v1",
            kind="RayService",
            metadata={
                "name": args["name"],
                "namespace": args["namespace"],
                # The API server drops an empty mapping, and each `up` would see that as a change.
                **({"labels": labels} if labels else {}),
                **({"annotations": {"pulumi.com/waitFor": "condition=Ready"}} if minutes else {}),
            },
            spec=ray_service_spec(args),
            opts=pulumi.ResourceOptions.merge(
                pulumi.ResourceOptions(depends_on=opts.depends_on if opts else None),
                pulumi.ResourceOptions(
                    parent=self,
                    depends_on=[namespace, *around],
                    replace_on_changes=replace_paths(_strategy(args)),
                    # The new service needs the GPUs and the name of the old one.
                    delete_before_replace=True,
                    custom_timeouts=pulumi.CustomTimeouts(create=timeout, update=timeout, delete=_DELETE_TIMEOUT),
                ),
            ),
        )

        # KubeRay keeps this Service's name whichever cluster serves.
        host = f"{args['name']}-serve-svc.{args['namespace']}.svc.cluster.local"
        self.endpoint = pulumi.Output.from_input(f"http://{host}:{SERVE_PORT}/v1")
        self.model_id = pulumi.Output.from_input(args["model"]["id"])
        self.register_outputs({"endpoint": self.endpoint, "modelId": self.model_id})


def object_name(service: str, suffix: ServiceSuffix) -> str:
    """Name of a Kubernetes object that belongs to the service, fixed so that a preview knows it."""
    return f"{service}-{suffix}"


def check_service(args: PrefillDecodeServiceArgs) -> list[str]:
    """Finds what Ray or vLLM would refuse, or wait for without end, because arguments contradict each other.

    Returns:
        One sentence per fault, each starting with the field.
    """
    faults: list[str] = []
    for role, role_args in _roles(args).items():
        replicas = role_args["replicas"]
        if not 1 <= replicas <= MAX_WORKERS_PER_ROLE:
            faults.append(f"{role}.replicas is {replicas}: write 1 to {MAX_WORKERS_PER_ROLE}")
        sizes = role_args["tensor_parallel_size"], role_args["pipeline_parallel_size"]
        if (why := replica_fault(*sizes, args["gpus"])) is not None:
            faults.append(f"{role}: {why}; make the product {args['gpus']}")
    return faults + check_engine_kwargs(
        args["prefill"].get("engine_kwargs", {}), args["decode"].get("engine_kwargs", {})
    )


def ray_service_spec(args: PrefillDecodeServiceArgs) -> dict[str, Any]:
    """The RayService's ``spec`` as a plain document; see the KubeRay 1.6.0 CRD for its shape."""
    has_token = args.get("hugging_face_token") is not None
    token_secret = object_name(args["name"], ServiceSuffix.TOKEN) if has_token else None
    return {
        "serveConfigV2": render_serve_config(
            serve_config(args["name"], args["model"], args["prefill"], args["decode"], args.get("accelerator_type"))
        ),
        "upgradeStrategy": {"type": _strategy(args).value},
        "excludeHeadPodFromServeSvc": True,
        "rayClusterConfig": ray_cluster_config(
            ray_version=args["ray_version"],
            head_template=head_pod_template(
                args["image"], object_name(args["name"], ServiceSuffix.HEAD_ACCOUNT), token_secret
            ),
            worker_template=worker_pod_template(
                args["image"],
                object_name(args["name"], ServiceSuffix.WORKER_ACCOUNT),
                args["worker"],
                args["gpus"],
                args["efa_interfaces"],
                token_secret,
            ),
            gpus=args["gpus"],
            replicas={role: role_args["replicas"] for role, role_args in _roles(args).items()},
        ),
    }


def _roles(args: PrefillDecodeServiceArgs) -> Mapping[Role, RoleArgs]:
    return {Role.PREFILL: args["prefill"], Role.DECODE: args["decode"]}


def _strategy(args: PrefillDecodeServiceArgs) -> UpgradeStrategy:
    return UpgradeStrategy(args.get("upgrade_strategy", UpgradeStrategy.NONE))


def _network_policy_spec(operator_namespace: str) -> kubernetes.networking.v1.NetworkPolicySpecArgs:
    """Who may reach Ray's pods: each other, the operator, and everybody for requests and metrics.

    It keeps Ray's dashboard and its other ports, which run code, from the rest of the cluster. It counts where the network
    plugin enforces it (vpc-cni with ``enableNetworkPolicy``), and beside the token, not instead of it.
    """
    ray_pods = kubernetes.meta.v1.LabelSelectorArgs(
        match_expressions=[kubernetes.meta.v1.LabelSelectorRequirementArgs(key="ray.io/node-type", operator="Exists")]
    )
    operator = kubernetes.meta.v1.LabelSelectorArgs(match_labels={"kubernetes.io/metadata.name": operator_namespace})
    return kubernetes.networking.v1.NetworkPolicySpecArgs(
        pod_selector=ray_pods,
        policy_types=["Ingress"],
        ingress=[
            kubernetes.networking.v1.NetworkPolicyIngressRuleArgs(
                from_=[
                    kubernetes.networking.v1.NetworkPolicyPeerArgs(pod_selector=ray_pods),
                    kubernetes.networking.v1.NetworkPolicyPeerArgs(namespace_selector=operator),
                ]
            ),
            kubernetes.networking.v1.NetworkPolicyIngressRuleArgs(
                ports=[
                    kubernetes.networking.v1.NetworkPolicyPortArgs(protocol="TCP", port=port)
                    for port in (SERVE_PORT, METRICS_PORT)
                ]
            ),
        ],
    )
