"""Rules of the nodes: the GPU type, where its instances come from, and whether the pods fit on them."""

import re
from collections.abc import Iterator
from typing import Final

from components.choices import CapacityKind, UpgradeStrategy
from components.faults import Fault, path, remove, set_to
from components.node_budget import head_budget, heads_held, system_demand, system_node, worker_budget
from components.quantities import mebibytes
from components.settings.models import Settings
from components.settings.rules import Rule
from policies.ray_efa_policies.instances import INSTANCE_TYPES, InstanceType

ACCELERATOR_TYPES: Final = ("T4", "V100", "A10G", "L4", "L40S", "A100", "H100", "H200", "B200")
"""GPU names of the catalogue that Ray has an accelerator type for (ray-project/ray, ray.util.accelerators)."""

RAY_CPUS_OF_A_REPLICA: Final = 1
"""The actor of a replica; its GPU bundles ask for no CPU (serve_app)."""

RAY_CPUS_OF_THE_INGRESS: Final = 1
"""OpenAiIngress: one replica, which lands on a worker because the head has no CPUs for Ray."""

_GPU_FAMILY = re.compile(r"(g|gr|p)\d")


def hardware_of(s: Settings) -> InstanceType | None:
    """What a GPU node has, or None where neither the catalogue nor the configuration says."""
    try:
        return s.gpu_nodes.hardware
    except LookupError:
        return None


def instance_type(s: Settings) -> Iterator[Fault]:
    """A GPU type with EFA, from the catalogue or described in full."""
    nodes, at = s.gpu_nodes, path("gpuNodes", "instanceType")
    name, block = nodes.instance_type, path("gpuNodes", "hardware")
    if name in INSTANCE_TYPES:
        if nodes.hardware_block is not None:
            yield Fault(
                block, f"the catalogue knows {name}, and two sources would contradict each other", remove(block)
            )
        return
    family = name.partition(".")[0]
    siblings = [known.name for known in INSTANCE_TYPES.values() if known.family == family]
    choose = set_to(at, "g6.8xlarge")
    if not _GPU_FAMILY.match(family):
        yield Fault(at, "the type has no EFA with an NVIDIA GPU", choose, name)
    elif nodes.hardware_block is None and siblings:
        yield Fault(
            at, f"the type has no EFA; of {family} these have: {', '.join(siblings)}", set_to(at, siblings[0]), name
        )
    elif nodes.hardware_block is None:
        why = "the catalogue does not know the type, and its GPUs and EFA interfaces are not guessed"
        fix = (
            f"Write {block} with gpus, gpuName, gpuMemoryMib, vcpus, memoryMib, nvmeGb, efaInterfaces, networkCards, "
            f"bandwidthGbps and gpudirect; aws ec2 describe-instance-types --instance-types {name} tells them."
        )
        yield Fault(at, why, fix, name)


def zone_in_network(s: Settings) -> Iterator[Fault]:
    """The GPU nodes are where the network has a private subnet."""
    zone, at, known = s.gpu_nodes.zone, path("gpuNodes", "zone"), s.network.zone_names
    if re.fullmatch(rf"{re.escape(s.region)}[a-z]", zone) is None:
        fix = set_to(at, known[0] if known else f"{s.region}a")
        yield Fault(at, f"it is not a zone of the stack's region {s.region}", fix, zone)
    elif known and zone not in known:
        where = path("network", "privateSubnets" if s.network.existing else "zones")
        yield Fault(at, f"{where} has no subnet there: it holds {', '.join(known)}", set_to(at, known[0]), zone)


def capacity(s: Settings) -> Iterator[Fault]:
    """A reservation has its id, and an id has its kind."""
    reservation, at = s.gpu_nodes.capacity.reservation_id, path("gpuNodes", "capacity", "reservationId")
    if (why := s.gpu_nodes.capacity.kind.contradiction(reservation)) is None:
        return
    if reservation is None:
        yield Fault(at, why, set_to(at, "cr-0123456789abcdef0"))
    else:
        fix = f"{set_to(path('gpuNodes', 'capacity', 'kind'), 'reservation')} (or {CapacityKind.CAPACITY_BLOCK})"
        yield Fault(at, why, fix, reservation)


def enough_nodes(s: Settings) -> Iterator[Fault]:
    """One node for each replica; all of them twice where an upgrade makes a second cluster."""
    at, count = path("gpuNodes", "count"), s.gpu_nodes.count
    prefill, decode = s.prefill.replicas, s.decode.replicas
    needed = prefill + decode
    if needed > count:
        why = f"prefill.replicas {prefill} + decode.replicas {decode} = {needed} workers need a node each"
        yield Fault(at, why, set_to(at, needed), count)
    elif s.service.upgrade_strategy is UpgradeStrategy.NEW_CLUSTER and count < 2 * needed:
        strategy = path("service", "upgradeStrategy")
        why = (
            f"an upgrade starts a second cluster beside the first: 2 x {needed} workers need {2 * needed} GPU nodes, "
            f"and gpuNodes.count is {count}, so it would wait for ever"
        )
        yield Fault(strategy, why, f"{set_to(strategy, 'None')} (or set {at} to {2 * needed})", "NewCluster")


def worker_fits(s: Settings) -> Iterator[Fault]:
    """CPU and memory of a worker are on a GPU node, and shared memory is part of the memory."""
    worker, hardware = s.service.worker, hardware_of(s)
    cpu, memory, shm = (path("service", "worker", name) for name in ("cpu", "memory", "shmSize"))
    memory_mib, shm_mib = mebibytes(worker.memory), mebibytes(worker.shm_size)
    if shm_mib >= memory_mib:
        quarter = memory_mib // 4
        fix = set_to(shm, f"{quarter}Mi") if quarter else set_to(memory, f"{4 * shm_mib}Mi")
        yield Fault(
            shm,
            f"what lies in /dev/shm counts as memory of the worker, which has {worker.memory}",
            fix,
            worker.shm_size,
        )
    if hardware is None:
        return
    room = worker_budget(hardware.vcpus, hardware.allocatable_memory_mib)
    if worker.cpu * 1000 > room.millicpus:
        why = f"a {hardware.name} has {hardware.vcpus} vCPU, of which {room.millicpus / 1000:g} are left for a worker"
        yield Fault(cpu, why, set_to(cpu, room.millicpus // 1000), worker.cpu)
    if memory_mib > room.memory_mib:
        why = (
            f"a {hardware.name} has {hardware.memory_mib / 1024:g} GiB, of which huge pages, kubelet and system pods leave "
            f"{room.memory_mib / 1024:.1f} GiB at least"
        )
        yield Fault(memory, why, set_to(memory, f"{room.memory_mib // 1024}Gi"), worker.memory)


def ray_cpus(s: Settings) -> Iterator[Fault]:
    """Each worker has a CPU for its replica, and one of them has another for the ingress; all are alike."""
    cpu, at = s.service.worker.cpu, path("service", "worker", "cpu")
    needed = RAY_CPUS_OF_A_REPLICA + RAY_CPUS_OF_THE_INGRESS
    if cpu < needed:
        why = (
            f"Ray needs {RAY_CPUS_OF_A_REPLICA} CPU for the replica of a worker and {RAY_CPUS_OF_THE_INGRESS} for the ingress, "
            f"which runs on one of them: {needed}; with fewer the application stays DEPLOYING"
        )
        yield Fault(at, why, set_to(at, needed), cpu)


def system_node_holds_the_head(s: Settings) -> Iterator[Fault]:
    """The Ray head, its autoscaler and, on a single node, operator and CoreDNS fit the CPU node."""
    nodes, at = s.cluster.system_nodes, path("cluster", "systemNodes", "instanceType")
    room, demand = system_node(nodes.instance_type), system_demand(nodes.count)
    if room is None:
        why = "it must be an x86_64 type of the C, M or R families, generation 5 or newer, of a size from large up"
        yield Fault(at, why, set_to(at, "m7i.xlarge"), nodes.instance_type)
    elif demand.millicpus > room.millicpus or demand.memory_mib > room.memory_mib:
        what = "the Ray head, the operator and system pods" if nodes.count == 1 else "the Ray head and system pods"
        why = f"{what} request {demand} on one node, and this type offers {room}"
        yield Fault(at, why, set_to(at, "m7i.xlarge"), nodes.instance_type)


def system_nodes_hold_a_second_head(s: Settings) -> Iterator[Fault]:
    """An upgrade that makes a second cluster has room for its head as well."""
    nodes = s.cluster.system_nodes
    room = system_node(nodes.instance_type)
    if s.service.upgrade_strategy is not UpgradeStrategy.NEW_CLUSTER or room is None:
        return
    # Where not even the first head fits, the rule above says so.
    if heads_held(room, nodes.count) == 1:
        at, count = path("service", "upgradeStrategy"), path("cluster", "systemNodes", "count")
        why = (
            f"an upgrade starts a second Ray head, of {head_budget()}, beside the first, and {nodes.count} x {nodes.instance_type} with "
            f"{room} each hold one, with the operator and system pods"
        )
        yield Fault(at, why, f"{set_to(at, 'None')} (or set {count} to {nodes.count + 1})", "NewCluster")


def accelerator_type(s: Settings) -> Iterator[Fault]:
    """Ray's label of the GPU, if asked for, is the one the nodes carry."""
    wanted, at, hardware = s.service.accelerator_type, path("service", "acceleratorType"), hardware_of(s)
    if wanted is None or hardware is None or (wanted == hardware.gpu_name and wanted in ACCELERATOR_TYPES):
        return
    if hardware.gpu_name in ACCELERATOR_TYPES:
        why = f"{hardware.name} has {hardware.gpu_name}, so no node carries that label and replicas wait for ever"
        yield Fault(at, why, f"{remove(at)} (or set it to {hardware.gpu_name})", wanted)
    else:
        yield Fault(
            at, f"Ray knows no accelerator type for the {hardware.gpu_name} of {hardware.name}", remove(at), wanted
        )


_TYPE = ("gpuNodes.instanceType", "gpuNodes.hardware")
_WORKERS = ("prefill.replicas", "decode.replicas")

RULES: Final = (
    Rule(_TYPE, instance_type),
    Rule(("gpuNodes.zone", "network", "region"), zone_in_network),
    Rule(("gpuNodes.capacity",), capacity),
    Rule(("gpuNodes.count", "service.upgradeStrategy", *_WORKERS), enough_nodes),
    Rule((*_TYPE, "service.worker"), worker_fits),
    Rule(("service.worker.cpu",), ray_cpus),
    Rule(("cluster.systemNodes",), system_node_holds_the_head),
    Rule(("cluster.systemNodes", "service.upgradeStrategy"), system_nodes_hold_a_second_head),
    Rule((*_TYPE, "service.acceleratorType"), accelerator_type),
)
