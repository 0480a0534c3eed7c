"""The one catalogue of GPU instance types with EFA: what they have, and how their network interfaces are laid out.

It stands in the pack because the pack must be self-contained; settings, components and the sandbox read it from here.

Sources. GPUs, GPU memory, vCPU, memory, NVMe, EFA interfaces and network cards are EC2's own ``DescribeInstanceTypes``
answers, as recorded in the PyPI package moto 5.2.5; a test compares every row with that record. Three facts are in no API:

- ``gpudirect``: whether EFA reads and writes GPU memory itself. AWS gives it for P4d and later P types; G types go through
  host memory (aws/aws-ofi-nccl#547, ai-dynamo/nixl#901). p5.4xlarge is the exception named on AWS's EC2 P5 page.
- ``compute_capability``: NVIDIA's list "CUDA GPU Compute Capability"; A10G is AWS's variant of the A10 there.
- ``allocatable_memory_mib``: a careful floor of what the kubelet offers, see the property.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

InterfaceType = Literal["interface", "efa", "efa-only"]

# Huge pages that the EKS AMI's EFA installer reserves per vCPU, and what the kubelet keeps for itself and the system
# (3.4 GiB on 32 vCPU and 2.8 GiB were seen on a g6.8xlarge: awslabs/amazon-eks-ami EFA notes).
_HUGE_PAGES_MIB_PER_VCPU = 110
_KUBELET_RESERVED_MIB = 2_868
# EC2 counts memory that firmware, kernel and hypervisor take before Linux sees it; nodes of this family offered 110-120 of 128 GiB.
_VISIBLE_SHARE = 0.92


# Of a GPU, not of an instance type: a row names its GPU, and so does the description of a type that has no row.
_COMPUTE_CAPABILITIES: Mapping[str, float] = MappingProxyType(
    {
        "V100": 7.0,
        "T4": 7.5,
        "A100": 8.0,
        "A10G": 8.6,
        "L4": 8.9,
        "L40S": 8.9,
        "H100": 9.0,
        "H200": 9.0,
        "B200": 10.0,
        "B300": 10.3,
        "RTX PRO 4500": 12.0,
        "RTX PRO Server 6000": 12.0,
    }
)


@dataclass(frozen=True)
class NetworkInterface:
    """One interface of a launch template: where it sits and what it is."""

    network_card_index: int
    device_index: int
    interface_type: InterfaceType


def efa_interface_layout(efa_interfaces: int, network_cards: int) -> tuple[NetworkInterface, ...]:
    """The interfaces that attach ``efa_interfaces`` EFA devices over ``network_cards`` cards, one a card.

    Device index 0 on the first card and 1 on every other one; the first carries IP (``efa``), the others only EFA
    (``efa-only``). Where cards outnumber EFA devices by one (p6-b300), card 0 is plain ENA
    (eksctl-io/eksctl#8692, aws/aws-parallelcluster#7143).
    """
    first: InterfaceType = "efa" if network_cards == efa_interfaces else "interface"
    others = range(1, network_cards)
    return (NetworkInterface(0, 0, first), *(NetworkInterface(card, 1, "efa-only") for card in others))


@dataclass(frozen=True)
class InstanceType:
    """What one EC2 GPU instance type has. Memory in MiB, storage in GB, bandwidth in Gbit/s as EC2 states them."""

    name: str
    gpus: int
    gpu_name: str
    gpu_memory_mib: int
    vcpus: int
    memory_mib: int
    nvme_gb: int
    efa_interfaces: int
    network_cards: int
    bandwidth_gbps: int
    gpudirect: bool

    @property
    def family(self) -> str:
        """The part before the dot: ``g6`` of ``g6.8xlarge``."""
        return self.name.partition(".")[0]

    @property
    def allocatable_memory_mib(self) -> int:
        """A floor, in MiB, of the memory that pods may request on a node of this type with the NVIDIA AL2023 AMI."""
        return int(self.memory_mib * _VISIBLE_SHARE) - _HUGE_PAGES_MIB_PER_VCPU * self.vcpus - _KUBELET_RESERVED_MIB

    @property
    def compute_capability(self) -> float | None:
        """The GPU's CUDA compute capability, such as 8.9, or None for a GPU that no type of the catalogue has."""
        return _COMPUTE_CAPABILITIES.get(self.gpu_name)

    def interface_layout(self) -> tuple[NetworkInterface, ...]:
        """The interfaces a launch template needs to attach every EFA device of this type."""
        return efa_interface_layout(self.efa_interfaces, self.network_cards)


_ROWS = (
    # name, GPUs, GPU, GPU MiB, vCPU, MiB, NVMe GB, EFA, cards, Gbit/s, GPUDirect
    InstanceType("g4dn.8xlarge", 1, "T4", 16384, 32, 131072, 900, 1, 1, 50, False),
    InstanceType("g4dn.12xlarge", 4, "T4", 16384, 48, 196608, 900, 1, 1, 50, False),
    InstanceType("g4dn.16xlarge", 1, "T4", 16384, 64, 262144, 900, 1, 1, 50, False),
    InstanceType("g4dn.metal", 8, "T4", 16384, 96, 393216, 1800, 1, 1, 100, False),
    InstanceType("g5.8xlarge", 1, "A10G", 22888, 32, 131072, 900, 1, 1, 25, False),
    InstanceType("g5.12xlarge", 4, "A10G", 22888, 48, 196608, 3800, 1, 1, 40, False),
    InstanceType("g5.16xlarge", 1, "A10G", 22888, 64, 262144, 1900, 1, 1, 25, False),
    InstanceType("g5.24xlarge", 4, "A10G", 22888, 96, 393216, 3800, 1, 1, 50, False),
    InstanceType("g5.48xlarge", 8, "A10G", 22888, 192, 786432, 7600, 1, 1, 100, False),
    InstanceType("g6.8xlarge", 1, "L4", 22888, 32, 131072, 900, 1, 1, 25, False),
    InstanceType("g6.12xlarge", 4, "L4", 22888, 48, 196608, 3760, 1, 1, 40, False),
    InstanceType("g6.16xlarge", 1, "L4", 22888, 64, 262144, 1880, 1, 1, 25, False),
    InstanceType("g6.24xlarge", 4, "L4", 22888, 96, 393216, 3760, 1, 1, 50, False),
    InstanceType("g6.48xlarge", 8, "L4", 22888, 192, 786432, 7520, 1, 1, 100, False),
    InstanceType("gr6.8xlarge", 1, "L4", 22888, 32, 262144, 900, 1, 1, 25, False),
    InstanceType("g6e.8xlarge", 1, "L40S", 45776, 32, 262144, 900, 1, 1, 25, False),
    InstanceType("g6e.12xlarge", 4, "L40S", 45776, 48, 393216, 3800, 1, 1, 100, False),
    InstanceType("g6e.16xlarge", 1, "L40S", 45776, 64, 524288, 1900, 1, 1, 35, False),
    InstanceType("g6e.24xlarge", 4, "L40S", 45776, 96, 786432, 3800, 2, 2, 200, False),
    InstanceType("g6e.48xlarge", 8, "L40S", 45776, 192, 1572864, 7600, 4, 4, 400, False),
    InstanceType("g7.8xlarge", 1, "RTX PRO 4500", 32768, 32, 131072, 930, 1, 1, 100, False),
    InstanceType("g7.12xlarge", 2, "RTX PRO 4500", 32768, 48, 196608, 1900, 1, 1, 175, False),
    InstanceType("g7.24xlarge", 4, "RTX PRO 4500", 32768, 96, 393216, 3800, 1, 1, 350, False),
    InstanceType("g7.48xlarge", 8, "RTX PRO 4500", 32768, 192, 786432, 7600, 2, 2, 700, False),
    InstanceType("g7e.8xlarge", 1, "RTX PRO Server 6000", 98304, 32, 262144, 1900, 1, 1, 100, False),
    InstanceType("g7e.12xlarge", 2, "RTX PRO Server 6000", 98304, 48, 524288, 3800, 1, 1, 400, False),
    InstanceType("g7e.24xlarge", 4, "RTX PRO Server 6000", 98304, 96, 1048576, 7600, 2, 2, 800, False),
    InstanceType("g7e.48xlarge", 8, "RTX PRO Server 6000", 98304, 192, 2097152, 15200, 4, 4, 1600, False),
    InstanceType("p3dn.24xlarge", 8, "V100", 32768, 96, 786432, 1800, 1, 1, 100, False),
    InstanceType("p4d.24xlarge", 8, "A100", 40960, 96, 1179648, 8000, 4, 4, 400, True),
    InstanceType("p4de.24xlarge", 8, "A100", 81920, 96, 1179648, 8000, 4, 4, 400, True),
    InstanceType("p5.4xlarge", 1, "H100", 81920, 16, 262144, 3800, 1, 1, 100, False),
    InstanceType("p5.48xlarge", 8, "H100", 81920, 192, 2097152, 30400, 32, 32, 3200, True),
    InstanceType("p5e.48xlarge", 8, "H200", 144384, 192, 2097152, 30400, 32, 32, 3200, True),
    InstanceType("p5en.48xlarge", 8, "H200", 144384, 192, 2097152, 30400, 16, 16, 3200, True),
    InstanceType("p6-b200.48xlarge", 8, "B200", 183359, 192, 2097152, 30400, 8, 8, 3200, True),
    InstanceType("p6-b300.48xlarge", 8, "B300", 275040, 192, 4194304, 30400, 16, 17, 6400, True),
)

INSTANCE_TYPES: Mapping[str, InstanceType] = MappingProxyType({row.name: row for row in _ROWS})
