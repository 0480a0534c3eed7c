"""The typed configuration of a stack: what can be set, what it means, what it is when nobody sets it.

Only shapes live here: types, closed sets, ranges, spellings. What depends on more than one field is a rule of its own,
see the modules beside this one. Attributes are snake_case; in ``Pulumi.<stack>.yaml`` the same names are camelCase.
"""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue, SecretStr
from pydantic.alias_generators import to_camel

from components import versions
from components.choices import CapacityKind, Dtype, NatGateways, UpgradeStrategy
from components.defaults import HELM_TIMEOUT_MINUTES, LOG_RETENTION_DAYS, NODES_TIMEOUT_MINUTES, READY_TIMEOUT_MINUTES
from components.images import default_image
from components.model_shapes import MODEL_SHAPES, ModelShape
from components.ray_cluster import MAX_WORKERS_PER_ROLE
from components.settings.fields import EXACT, EXAMPLE_REGION, QUANTITY, REQUIRED, URL, ZONE, setting, spelled
from policies.ray_efa_policies.instances import INSTANCE_TYPES, InstanceType

_REPOSITORY = "URL of the chart repository."
_CHART = "Name of the chart."
_VERSION = "Exact version of the chart."
_DNS_LABEL = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"


class _Section(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True, strict=True)


class Network(_Section):
    """Where the nodes live: a new VPC, or one that exists (``vpcId`` and ``privateSubnets``)."""

    cidr: str = setting(
        "10.20.0.0/16",
        "Address range of the new VPC.",
        **spelled(r"[0-9.]+/\d+", "be an IPv4 range, such as 10.20.0.0/16"),
    )
    zones: list[str] = setting(
        list,
        "Availability Zones of the new VPC, at least two. Append, never reorder: the address plan follows the order.",
        example=[f"{EXAMPLE_REGION}a", f"{EXAMPLE_REGION}b"],
    )
    nat_gateways: NatGateways = setting(NatGateways.SINGLE, "NAT gateways of the new VPC: one, or one in each zone.")
    vpc_id: str | None = setting(
        None,
        "An existing VPC, instead of a new one.",
        example="vpc-0123456789abcdef0",
        **spelled(r"vpc-[0-9a-f]{8,17}", "be the id of a VPC: vpc- and 8 to 17 hexadecimal digits"),
    )
    private_subnets: dict[str, str] = setting(
        dict,
        "Zone -> id of a private subnet of the existing VPC, at least two zones.",
        example={f"{EXAMPLE_REGION}a": "subnet-0123456789abcdef0", f"{EXAMPLE_REGION}b": "subnet-0123456789abcdef1"},
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

    public: bool = setting(True, "Whether the API answers on the internet, to publicCidrs only.")
    private: bool = setting(True, "Whether the API answers inside the VPC.")
    public_cidrs: list[str] = setting(
        list, "The address ranges that reach the public endpoint.", example=["<your address>/32"]
    )
    allow_anywhere: bool = setting(False, "Allow 0.0.0.0/0 among publicCidrs.")


class SystemNodes(_Section):
    """The CPU nodes: system pods, the KubeRay operator, the Ray head pod."""

    instance_type: str = setting("m7i.xlarge", "EC2 type of the CPU nodes, x86_64, of the general C, M or R families.")
    count: int = setting(1, "How many CPU nodes.", ge=1, le=20)


class Cluster(_Section):
    """The EKS control plane and its CPU nodes."""

    kubernetes_version: str = setting(
        versions.KUBERNETES,
        "Kubernetes version of the control plane, as text.",
        **spelled(r"\d+\.\d+", "be a Kubernetes minor version in quotes, such as '1.35'"),
    )
    endpoint: Endpoint = setting(
        Endpoint, "Who reaches the Kubernetes API.", example={"publicCidrs": ["<your address>/32"]}
    )
    admins: list[str] = setting(
        list,
        "ARNs of IAM roles and users that administer the cluster, beside the one that makes it, who must not be among them.",
        example=["arn:aws:iam::123456789012:role/ops"],
    )
    log_retention_days: int = setting(LOG_RETENTION_DAYS, "Days CloudWatch keeps control-plane logs.", ge=1)
    system_nodes: SystemNodes = setting(SystemNodes, "The CPU nodes.")


class Capacity(_Section):
    """Where the GPU instances come from."""

    kind: CapacityKind = setting(CapacityKind.ON_DEMAND, "onDemand, reservation, or capacityBlock.")
    reservation_id: str | None = setting(
        None,
        "Id of the capacity reservation or capacity block.",
        example="cr-0123456789abcdef0",
        **spelled(r"cr-[0-9a-f]{8,17}", "be the id of a capacity reservation: cr- and 8 to 17 hexadecimal digits"),
    )


class Hardware(_Section):
    """What a GPU instance type has, for a type the catalogue does not know. ``aws ec2 describe-instance-types`` tells."""

    gpus: int = setting(REQUIRED, "GPUs of one instance.", example=8, ge=1)
    gpu_name: str = setting(REQUIRED, "Name of the GPU, such as H100.", example="H100")
    gpu_memory_mib: int = setting(REQUIRED, "Memory of one GPU in MiB.", example=81920, ge=1024)
    vcpus: int = setting(REQUIRED, "vCPUs of one instance.", example=192, ge=2)
    memory_mib: int = setting(REQUIRED, "Memory of one instance in MiB.", example=2097152, ge=8192)
    nvme_gb: int = setting(REQUIRED, "Instance storage in GB; model weights are cached on it.", example=30400, ge=1)
    efa_interfaces: int = setting(REQUIRED, "The most EFA interfaces an instance takes.", example=32, ge=1)
    network_cards: int = setting(REQUIRED, "Network cards of one instance.", example=32, ge=1)
    bandwidth_gbps: int = setting(REQUIRED, "Network bandwidth in Gbit/s.", example=3200, ge=1)
    gpudirect: bool = setting(REQUIRED, "Whether EFA reads and writes GPU memory itself.", example=True)


class GpuNodes(_Section):
    """The GPU nodes: one node group with EFA, in one zone. One worker pod takes one node."""

    instance_type: str = setting(
        "g6.8xlarge",
        "EC2 type of the GPU nodes.",
        **spelled(r"[a-z0-9-]+\.[a-z0-9-]+", "be an EC2 instance type, such as g6.8xlarge"),
    )
    count: int = setting(2, "How many GPU nodes. Prefill and decode replicas together need one each.", ge=1, le=100)
    zone: str = setting(
        REQUIRED,
        "The Availability Zone of all GPU nodes; EFA does not cross zones.",
        example=f"{EXAMPLE_REGION}a",
        **ZONE,
    )
    capacity: Capacity = setting(Capacity, "Where the instances come from.")
    placement_group: str | None = setting(
        None,
        "An existing cluster placement group, instead of one the stack makes (with a reservation it makes none).",
        example="my-placement-group",
        min_length=1,
        max_length=255,
    )
    create_timeout_minutes: int = setting(
        NODES_TIMEOUT_MINUTES, "Minutes to wait until the GPU nodes joined.", ge=10, le=180
    )
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

    parameters: int = setting(REQUIRED, "Parameters, all of them.", example=8_000_000_000, ge=1_000_000)
    layers: int = setting(REQUIRED, "num_hidden_layers.", example=32, ge=1)
    kv_layers: int | None = setting(None, "Layers with a KV cache, where not all have one.", example=8, ge=1)
    heads: int = setting(REQUIRED, "num_attention_heads.", example=32, ge=1)
    kv_heads: int = setting(REQUIRED, "num_key_value_heads.", example=8, ge=1)
    head_dim: int = setting(REQUIRED, "head_dim.", example=128, ge=1)
    hybrid: bool = setting(False, "Whether some layers are linear attention or Mamba.")
    state_bytes: int = setting(0, "Bytes of state one sequence holds in layers without a KV cache.", ge=0)
    max_positions: int | None = setting(None, "max_position_embeddings.", example=131072, ge=1)


class Model(_Section):
    """The model, and the engine settings that prefill and decode share."""

    id: str = setting(
        "qwen3.5-9b",
        "Name of the model in the API; one for both roles.",
        **spelled(r"[A-Za-z0-9](?:[A-Za-z0-9._/-]{0,94}[A-Za-z0-9])?", "be a name of letters, digits and . _ - /"),
    )
    source: str = setting(
        "Qwen/Qwen3.5-9B",
        "Hugging Face repository of the weights.",
        **spelled(r"[\w.-]+/[\w.-]+", "be a Hugging Face repository, such as Qwen/Qwen3.5-9B"),
    )
    max_model_len: int = setting(4096, "Longest prompt and answer together, in tokens.", ge=16)
    dtype: Dtype = setting(Dtype.BFLOAT16, "Number format of weights and KV cache.")
    gpu_memory_utilization: float = setting(0.9, "Share of a GPU's memory vLLM may use.", gt=0, lt=1)
    enforce_eager: bool = setting(True, "Skip CUDA-graph capture, which lowers peak memory.")
    shape_block: Shape | None = Field(
        default=None, alias="shape", description="Numbers of a model that the built-in table does not know."
    )
    hugging_face_token: SecretStr | None = setting(
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


class RoleSettings(_Section):
    """Prefill or decode: how many replicas, and how one is spread over the GPUs of its worker."""

    replicas: int = setting(1, "Replicas; each is one worker on one node.", ge=1, le=MAX_WORKERS_PER_ROLE)
    tensor_parallel_size: int = setting(1, "GPUs that share each layer.", ge=1)
    pipeline_parallel_size: int = setting(1, "Groups of layers, one after another.", ge=1)
    engine_kwargs: dict[str, JsonValue] = setting(
        dict, "More vLLM engine arguments, as vLLM spells them (snake_case).", example={"max_num_seqs": 64}
    )


class Worker(_Section):
    """What one worker pod requests; all GPUs and EFA devices of its node come on top."""

    cpu: int = setting(24, "CPUs, for Kubernetes and for Ray.", ge=1)
    memory: str = setting("96Gi", "Memory, shmSize included.", **QUANTITY)
    shm_size: str = setting("16Gi", "Size limit of /dev/shm.", **QUANTITY)


class Service(_Section):
    """The RayService."""

    name: str = setting("ray-llm", "Name of the RayService: a DNS-1035 label of at most 47 characters.")
    namespace: str = setting(
        "inference",
        "Its namespace.",
        **spelled(_DNS_LABEL, "be a DNS label: small letters, digits and -, with a letter or digit at both ends"),
    )
    image: str | None = setting(
        None,
        "Image of head and workers, pinned. Unset: AWS's Ray Serve LLM image in the region's registry.",
        min_length=1,
    )
    ray_version: str = setting(
        versions.RAY,
        "Ray version inside the image.",
        **spelled(r"\d+\.\d+\.\d+", "be a Ray version of three numbers, such as 2.58.0"),
    )
    accelerator_type: str | None = setting(
        None, "Ray's name of the GPU. Leave it unset: one node type needs no label.", min_length=1
    )
    ready_timeout_minutes: int = setting(
        READY_TIMEOUT_MINUTES, "Minutes to wait until the model serves; 0 does not wait.", ge=0, le=720
    )
    worker: Worker = setting(Worker, "What one worker pod requests.")
    upgrade_strategy: UpgradeStrategy = setting(
        UpgradeStrategy.NONE,
        "None replaces the service on a change of its pods; NewCluster needs all GPU nodes twice and room for a second head.",
    )


class Chart(_Section):
    """A Helm chart at one version."""

    repository: str = setting(REQUIRED, _REPOSITORY, **URL)
    chart: str = setting(REQUIRED, _CHART, min_length=1)
    version: str = setting(REQUIRED, _VERSION, **EXACT)


class NvidiaDevicePlugin(Chart):
    """The NVIDIA device plugin, which offers GPUs to pods."""

    repository: str = setting(versions.NVIDIA_DEVICE_PLUGIN.repository, _REPOSITORY, **URL)
    chart: str = setting(versions.NVIDIA_DEVICE_PLUGIN.chart, _CHART, min_length=1)
    version: str = setting(versions.NVIDIA_DEVICE_PLUGIN.version, _VERSION, **EXACT)


class EfaDevicePlugin(Chart):
    """The EFA device plugin, which offers EFA interfaces to pods."""

    repository: str = setting(versions.EFA_DEVICE_PLUGIN.repository, _REPOSITORY, **URL)
    chart: str = setting(versions.EFA_DEVICE_PLUGIN.chart, _CHART, min_length=1)
    version: str = setting(versions.EFA_DEVICE_PLUGIN.version, _VERSION, **EXACT)


class KubeRayOperator(Chart):
    """The KubeRay operator, which makes Ray clusters and services."""

    repository: str = setting(versions.KUBERAY_OPERATOR.repository, _REPOSITORY, **URL)
    chart: str = setting(versions.KUBERAY_OPERATOR.chart, _CHART, min_length=1)
    version: str = setting(versions.KUBERAY_OPERATOR.version, _VERSION, **EXACT)
    crds: list[str] = setting(
        list,
        "URLs or paths of the CRDs. Unset: those of the operator's version.",
        example=["crds/ray.io_rayclusters.yaml", "crds/ray.io_rayjobs.yaml", "crds/ray.io_rayservices.yaml"],
    )


class Addons(_Section):
    """What runs in the cluster beside the service, one Helm release each."""

    nvidia_device_plugin: NvidiaDevicePlugin = setting(NvidiaDevicePlugin, "The NVIDIA device plugin.")
    efa_device_plugin: EfaDevicePlugin = setting(EfaDevicePlugin, "The EFA device plugin.")
    kuberay_operator: KubeRayOperator = setting(KubeRayOperator, "The KubeRay operator.")
    timeout_minutes: int = setting(HELM_TIMEOUT_MINUTES, "Minutes a Helm release may take.", ge=1, le=60)


class Settings(BaseModel):
    """The whole configuration of one stack, checked. Made by ``components.settings.load`` or ``parse`` only."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True, strict=True)

    region: str = Field(description="Region of the stack, from aws:region.")
    stack: str = Field(description="Name of the stack.")
    tags: dict[str, str] = setting(dict, "Tags of every resource that takes tags.", example={"team": "ml"})
    network: Network = setting(
        Network, "Where the nodes live.", example={"zones": [f"{EXAMPLE_REGION}a", f"{EXAMPLE_REGION}b"]}
    )
    cluster: Cluster = setting(
        Cluster,
        "The EKS control plane and its CPU nodes.",
        example={"endpoint": {"publicCidrs": ["<your address>/32"]}},
    )
    gpu_nodes: GpuNodes = Field(description="The GPU nodes.")
    model: Model = Field(default_factory=Model, description="The model and its engine settings.")
    prefill: RoleSettings = Field(default_factory=RoleSettings, description="The prefill role.")
    decode: RoleSettings = Field(default_factory=RoleSettings, description="The decode role.")
    service: Service = Field(default_factory=Service, description="The RayService.")
    addons: Addons = Field(default_factory=Addons, description="Device plugins and operator.")

    @property
    def roles(self) -> dict[str, RoleSettings]:
        """Both roles by name, prefill first."""
        return {"prefill": self.prefill, "decode": self.decode}

    @property
    def image(self) -> str:
        """The image of head and workers: the stack's own, else AWS's in this region."""
        image = self.service.image or default_image(self.region)
        if image is None:
            raise LookupError(f"no default image in {self.region}")
        return image
