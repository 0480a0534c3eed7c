"""The typed configuration of a stack: what can be set, what it means, what it is when nobody sets it.

Only shapes live here: types, closed sets, ranges, spellings. What depends on more than one field is a rule of its own,
see the modules beside this one. Attributes are snake_case; in ``Pulumi.<stack>.yaml`` the same names are camelCase.
"""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue, SecretStr
from pydantic.alias_generators import to_camel

from components import versions
from components.choices import CapacityKind, Dtype, NatGateways, UpgradeStrategy
from components.images import default_image
from components.model_shapes import MODEL_SHAPES, ModelShape
from components.ray_cluster import MAX_WORKERS_PER_ROLE
from policies.ray_efa_policies.instances import INSTANCE_TYPES, InstanceType

_UNSET: Any = object()


def _setting(default: Any, description: str, *, example: Any = None, must: str | None = None, **limits: Any) -> Any:
    """A field with what people need when it is wrong: ``example`` is a value to type, ``must`` the rule in words.

    No default means that the stack has to set it; a callable makes the default.
    """
    meta: dict[str, Any] = {"description": description, **limits}
    if default is not _UNSET:
        meta["default_factory" if callable(default) else "default"] = default
    shown = example if example is not None or default is _UNSET or callable(default) else default
    meta["examples"] = [] if shown is None else [shown]
    meta["json_schema_extra"] = {"must": must, "pattern": limits.get("pattern")} if must else None
    return Field(**meta)


def _names(pattern: str, must: str) -> dict[str, str]:
    return {"pattern": f"^(?:{pattern})$", "must": must}


_ZONE = _names(r"[a-z]{2}(?:-[a-z]+)+-\d[a-z]", "be the name of an Availability Zone, such as us-east-1a")
_QUANTITY = _names(r"[1-9]\d*(?:Mi|Gi)", "be a memory quantity with its unit, such as 96Gi or 512Mi")
_URL = _names(r"(?:https|oci)://\S+", "be an https:// or oci:// URL")
_EXACT = _names(r"v?\d+\.\d+\.\d+(?:[-+][0-9A-Za-z.+-]+)?", "be one exact version, such as 1.6.0: no range, no latest")
_REPOSITORY = "URL of the chart repository."
_CHART = "Name of the chart."
_VERSION = "Exact version of the chart."
_DNS_LABEL = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"


class _Section(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True, strict=True)


class Network(_Section):
    """Where the nodes live: a new VPC, or one that exists (``vpcId`` and ``privateSubnets``)."""

    cidr: str = _setting(
        "10.20.0.0/16",
        "Address range of the new VPC.",
        **_names(r"[0-9.]+/\d+", "be an IPv4 range, such as 10.20.0.0/16"),
    )
    zones: list[str] = _setting(
        list,
        "Availability Zones of the new VPC, at least two. Append, never reorder: the address plan follows the order.",
    )
    nat_gateways: NatGateways = _setting(NatGateways.SINGLE, "NAT gateways of the new VPC: one, or one in each zone.")
    vpc_id: str | None = _setting(
        None,
        "An existing VPC, instead of a new one.",
        example="vpc-0123456789abcdef0",
        **_names(r"vpc-[0-9a-f]{8,17}", "be the id of a VPC: vpc- and 8 to 17 hexadecimal digits"),
    )
    private_subnets: dict[str, str] = _setting(
        dict, "Zone -> id of a private subnet of the existing VPC, at least two zones."
    )

    @property
    def existing(self) -> bool:
        """Whether the stack lives in a VPC it does not make."""
        return self.vpc_id is not None or bool(self.private_subnets)

    @property
    def zone_names(self) -> tuple[str, ...]:
        """The zones with a private subnet, in the order of the configuration."""
        return tuple(self.private_subnets) if self.existing else tuple(self.zones)


class Endpoint(_Section):
    """Who reaches the Kubernetes API."""

    public: bool = _setting(True, "Whether the API answers on the internet, to publicCidrs only.")
    private: bool = _setting(True, "Whether the API answers inside the VPC.")
    public_cidrs: list[str] = _setting(list, "The address ranges that reach the public endpoint.")
    allow_anywhere: bool = _setting(False, "Allow 0.0.0.0/0 among publicCidrs.")


class SystemNodes(_Section):
    """The CPU nodes: system pods, the KubeRay operator, the Ray head pod."""

    instance_type: str = _setting("m7i.xlarge", "EC2 type of the CPU nodes, x86_64, of the general C, M or R families.")
    count: int = _setting(1, "How many CPU nodes.", ge=1, le=20)


class Cluster(_Section):
    """The EKS control plane and its CPU nodes."""

    kubernetes_version: str = _setting(
        versions.KUBERNETES,
        "Kubernetes version of the control plane, as text.",
        **_names(r"\d+\.\d+", "be a Kubernetes minor version in quotes, such as '1.35'"),
    )
    endpoint: Endpoint = _setting(Endpoint, "Who reaches the Kubernetes API.")
    log_retention_days: int = _setting(30, "Days CloudWatch keeps control-plane logs.", ge=1)
    system_nodes: SystemNodes = _setting(SystemNodes, "The CPU nodes.")


class Capacity(_Section):
    """Where the GPU instances come from."""

    kind: CapacityKind = _setting(CapacityKind.ON_DEMAND, "onDemand, reservation, or capacityBlock.")
    reservation_id: str | None = _setting(
        None,
        "Id of the capacity reservation or capacity block.",
        example="cr-0123456789abcdef0",
        **_names(r"cr-[0-9a-f]{8,17}", "be the id of a capacity reservation: cr- and 8 to 17 hexadecimal digits"),
    )


class Hardware(_Section):
    """What a GPU instance type has, for a type the catalogue does not know. ``aws ec2 describe-instance-types`` tells."""

    gpus: int = _setting(_UNSET, "GPUs of one instance.", example=8, ge=1)
    gpu_name: str = _setting(_UNSET, "Name of the GPU, such as H100.", example="H100")
    gpu_memory_mib: int = _setting(_UNSET, "Memory of one GPU in MiB.", example=81920, ge=1024)
    vcpus: int = _setting(_UNSET, "vCPUs of one instance.", example=192, ge=2)
    memory_mib: int = _setting(_UNSET, "Memory of one instance in MiB.", example=2097152, ge=8192)
    nvme_gb: int = _setting(_UNSET, "Instance storage in GB; model weights are cached on it.", example=30400, ge=1)
    efa_interfaces: int = _setting(_UNSET, "The most EFA interfaces an instance takes.", example=32, ge=1)
    network_cards: int = _setting(_UNSET, "Network cards of one instance.", example=32, ge=1)
    bandwidth_gbps: int = _setting(_UNSET, "Network bandwidth in Gbit/s.", example=3200, ge=1)
    gpudirect: bool = _setting(_UNSET, "Whether EFA reads and writes GPU memory itself.", example=True)


class GpuNodes(_Section):
    """The GPU nodes: one node group with EFA, in one zone. One worker pod takes one node."""

    instance_type: str = _setting(
        "g6.8xlarge",
        "EC2 type of the GPU nodes.",
        **_names(r"[a-z0-9-]+\.[a-z0-9-]+", "be an EC2 instance type, such as g6.8xlarge"),
    )
    count: int = _setting(2, "How many GPU nodes. Prefill and decode replicas together need one each.", ge=1, le=100)
    zone: str = _setting(
        _UNSET, "The Availability Zone of all GPU nodes; EFA does not cross zones.", example="us-east-1a", **_ZONE
    )
    capacity: Capacity = _setting(Capacity, "Where the instances come from.")
    placement_group: str | None = _setting(
        None,
        "An existing cluster placement group, instead of one the stack makes (with a reservation it makes none).",
        example="my-placement-group",
        min_length=1,
        max_length=255,
    )
    create_timeout_minutes: int = _setting(40, "Minutes to wait until the GPU nodes joined.", ge=10, le=180)
    hardware_block: Hardware | None = Field(
        default=None, alias="hardware", description="What the type has, only for a type the catalogue does not know."
    )

    @property
    def hardware(self) -> InstanceType:
        """What one node has: the catalogue's row, else the ``hardware`` block. The rules see to it that one is there."""
        known = INSTANCE_TYPES.get(self.instance_type)
        if known is not None:
            return known
        if self.hardware_block is None:
            raise LookupError(f"{self.instance_type} is not in the catalogue and has no hardware block")
        return InstanceType(name=self.instance_type, **self.hardware_block.model_dump())


class Shape(_Section):
    """The numbers of a model that decide where it fits; all are in the config.json of its repository."""

    parameters: int = _setting(_UNSET, "Parameters, all of them.", example=8_000_000_000, ge=1_000_000)
    layers: int = _setting(_UNSET, "num_hidden_layers.", example=32, ge=1)
    kv_layers: int | None = _setting(None, "Layers with a KV cache, where not all have one.", example=8, ge=1)
    heads: int = _setting(_UNSET, "num_attention_heads.", example=32, ge=1)
    kv_heads: int = _setting(_UNSET, "num_key_value_heads.", example=8, ge=1)
    head_dim: int = _setting(_UNSET, "head_dim.", example=128, ge=1)
    hybrid: bool = _setting(False, "Whether some layers are linear attention or Mamba.")
    state_bytes: int = _setting(0, "Bytes of state one sequence holds in layers without a KV cache.", ge=0)
    max_positions: int | None = _setting(None, "max_position_embeddings.", example=131072, ge=1)


class Model(_Section):
    """The model, and the engine settings that prefill and decode share."""

    id: str = _setting(
        "qwen3.5-9b",
        "Name of the model in the API; one for both roles.",
        **_names(r"[A-Za-z0-9](?:[A-Za-z0-9._/-]{0,94}[A-Za-z0-9])?", "be a name of letters, digits and . _ - /"),
    )
    source: str = _setting(
        "Qwen/Qwen3.5-9B",
        "Hugging Face repository of the weights.",
        **_names(r"[\w.-]+/[\w.-]+", "be a Hugging Face repository, such as Qwen/Qwen3.5-9B"),
    )
    max_model_len: int = _setting(4096, "Longest prompt and answer together, in tokens.", ge=16)
    dtype: Dtype = _setting(Dtype.BFLOAT16, "Number format of weights and KV cache.")
    gpu_memory_utilization: float = _setting(0.9, "Share of a GPU's memory vLLM may use.", gt=0, lt=1)
    enforce_eager: bool = _setting(True, "Skip CUDA-graph capture, which lowers peak memory.")
    shape_block: Shape | None = Field(
        default=None, alias="shape", description="Numbers of a model that the built-in table does not know."
    )
    hugging_face_token: SecretStr | None = _setting(
        None, "Token for a gated model. Set it with --secret.", must="be text that is not empty", min_length=1
    )

    @property
    def shape(self) -> ModelShape:
        """The model's numbers: the ``shape`` block, else the table's row. The rules see to it that one is there."""
        block = self.shape_block
        if block is None:
            return MODEL_SHAPES[self.source]
        numbers: dict[str, Any] = block.model_dump()
        numbers["kv_layers"] = block.kv_layers or block.layers
        return ModelShape(**numbers)


class Role(_Section):
    """Prefill or decode: how many replicas, and how one is spread over the GPUs of its worker."""

    replicas: int = _setting(1, "Replicas; each is one worker on one node.", ge=1, le=MAX_WORKERS_PER_ROLE)
    tensor_parallel_size: int = _setting(1, "GPUs that share each layer.", ge=1)
    pipeline_parallel_size: int = _setting(1, "Groups of layers, one after another.", ge=1)
    engine_kwargs: dict[str, JsonValue] = _setting(
        dict, "More vLLM engine arguments, as vLLM spells them (snake_case)."
    )


class Worker(_Section):
    """What one worker pod requests; all GPUs and EFA devices of its node come on top."""

    cpu: int = _setting(24, "CPUs, for Kubernetes and for Ray.", ge=1)
    memory: str = _setting("96Gi", "Memory, shmSize included.", **_QUANTITY)
    shm_size: str = _setting("16Gi", "Size limit of /dev/shm.", **_QUANTITY)


class Service(_Section):
    """The RayService."""

    name: str = _setting("ray-llm", "Name of the RayService: a DNS-1035 label of at most 47 characters.")
    namespace: str = _setting(
        "inference",
        "Its namespace.",
        **_names(_DNS_LABEL, "be a DNS label: small letters, digits and -, with a letter or digit at both ends"),
    )
    image: str | None = _setting(
        None,
        "Image of head and workers, pinned. Unset: AWS's Ray Serve LLM image in the region's registry.",
        min_length=1,
    )
    ray_version: str = _setting(
        versions.RAY,
        "Ray version inside the image.",
        **_names(r"\d+\.\d+\.\d+", "be a Ray version of three numbers, such as 2.58.0"),
    )
    accelerator_type: str | None = _setting(
        None, "Ray's name of the GPU. Leave it unset: one node type needs no label.", min_length=1
    )
    ready_timeout_minutes: int = _setting(60, "Minutes to wait until the model serves; 0 does not wait.", ge=0, le=720)
    worker: Worker = _setting(Worker, "What one worker pod requests.")
    upgrade_strategy: UpgradeStrategy = _setting(
        UpgradeStrategy.NONE, "None replaces the service on a change of its pods; NewCluster needs all GPU nodes twice."
    )


class Chart(_Section):
    """A Helm chart at one version."""

    repository: str = _setting(_UNSET, _REPOSITORY, **_URL)
    chart: str = _setting(_UNSET, _CHART, min_length=1)
    version: str = _setting(_UNSET, _VERSION, **_EXACT)


class NvidiaDevicePlugin(Chart):
    """The NVIDIA device plugin, which offers GPUs to pods."""

    repository: str = _setting(versions.NVIDIA_DEVICE_PLUGIN.repository, _REPOSITORY, **_URL)
    chart: str = _setting(versions.NVIDIA_DEVICE_PLUGIN.chart, _CHART, min_length=1)
    version: str = _setting(versions.NVIDIA_DEVICE_PLUGIN.version, _VERSION, **_EXACT)


class EfaDevicePlugin(Chart):
    """The EFA device plugin, which offers EFA interfaces to pods."""

    repository: str = _setting(versions.EFA_DEVICE_PLUGIN.repository, _REPOSITORY, **_URL)
    chart: str = _setting(versions.EFA_DEVICE_PLUGIN.chart, _CHART, min_length=1)
    version: str = _setting(versions.EFA_DEVICE_PLUGIN.version, _VERSION, **_EXACT)


class KubeRayOperator(Chart):
    """The KubeRay operator, which makes Ray clusters and services."""

    repository: str = _setting(versions.KUBERAY_OPERATOR.repository, _REPOSITORY, **_URL)
    chart: str = _setting(versions.KUBERAY_OPERATOR.chart, _CHART, min_length=1)
    version: str = _setting(versions.KUBERAY_OPERATOR.version, _VERSION, **_EXACT)
    crds: list[str] = _setting(list, "URLs or paths of the CRDs. Unset: those of the operator's version.")


class Addons(_Section):
    """What runs in the cluster beside the service, one Helm release each."""

    nvidia_device_plugin: NvidiaDevicePlugin = _setting(NvidiaDevicePlugin, "The NVIDIA device plugin.")
    efa_device_plugin: EfaDevicePlugin = _setting(EfaDevicePlugin, "The EFA device plugin.")
    kuberay_operator: KubeRayOperator = _setting(KubeRayOperator, "The KubeRay operator.")
    timeout_minutes: int = _setting(10, "Minutes a Helm release may take.", ge=1, le=60)


class Settings(BaseModel):
    """The whole configuration of one stack, checked. Made by ``components.settings.load`` or ``parse`` only."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True, strict=True)

    region: str = Field(description="Region of the stack, from aws:region.")
    stack: str = Field(description="Name of the stack.")
    tags: dict[str, str] = Field(default_factory=dict, description="Tags of every resource that takes tags.")
    network: Network = Field(default_factory=Network, description="Where the nodes live.")
    cluster: Cluster = Field(default_factory=Cluster, description="The EKS control plane and its CPU nodes.")
    gpu_nodes: GpuNodes = Field(description="The GPU nodes.")
    model: Model = Field(default_factory=Model, description="The model and its engine settings.")
    prefill: Role = Field(default_factory=Role, description="The prefill role.")
    decode: Role = Field(default_factory=Role, description="The decode role.")
    service: Service = Field(default_factory=Service, description="The RayService.")
    addons: Addons = Field(default_factory=Addons, description="Device plugins and operator.")

    @property
    def roles(self) -> dict[str, Role]:
        """Both roles by name, prefill first."""
        return {"prefill": self.prefill, "decode": self.decode}

    @property
    def image(self) -> str:
        """The image of head and workers: the stack's own, else AWS's in this region."""
        image = self.service.image or default_image(self.region)
        if image is None:
            raise LookupError(f"no default image in {self.region}")
        return image
