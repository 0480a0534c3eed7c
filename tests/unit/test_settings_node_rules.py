import pytest

from tests.unit.stack_files import REMOVED, faults, settings
from tests.unit.test_settings_fields import HARDWARE

SET = "Type: pulumi config set --path 'ray-llm-eks:"
RM = "Type: pulumi config rm --path 'ray-llm-eks:"


@pytest.mark.parametrize("name", ["m7i.xlarge", "t3.micro", "trn1.32xlarge", "hpc7a.96xlarge"])
def test_a_type_without_an_nvidia_gpu_is_refused(name: str) -> None:
    assert faults(gpuNodes__instanceType=name) == [
        f'ray-llm-eks:gpuNodes.instanceType is "{name}": the type has no EFA with an NVIDIA GPU. '
        f"{SET}gpuNodes.instanceType' g6.8xlarge"
    ]


def test_a_gpu_type_too_small_for_efa_is_refused_with_those_of_its_family() -> None:
    assert faults(gpuNodes__instanceType="g6.xlarge") == [
        'ray-llm-eks:gpuNodes.instanceType is "g6.xlarge": the type has no EFA; of g6 these have: g6.8xlarge, g6.12xlarge, '
        f"g6.16xlarge, g6.24xlarge, g6.48xlarge. {SET}gpuNodes.instanceType' g6.8xlarge"
    ]


def test_a_type_nobody_knows_is_not_guessed() -> None:
    assert faults(gpuNodes__instanceType="p9.48xlarge") == [
        'ray-llm-eks:gpuNodes.instanceType is "p9.48xlarge": the catalogue does not know the type, and its GPUs and EFA interfaces '
        "are not guessed. Write ray-llm-eks:gpuNodes.hardware with gpus, gpuName, gpuMemoryMib, vcpus, memoryMib, nvmeGb, "
        "efaInterfaces, networkCards, bandwidthGbps and gpudirect; aws ec2 describe-instance-types --instance-types p9.48xlarge "
        "tells them."
    ]


def test_a_type_nobody_knows_may_be_described() -> None:
    hardware = settings(
        gpuNodes__instanceType="p9.48xlarge",
        gpuNodes__hardware=HARDWARE,
        prefill__tensorParallelSize=8,
        decode__tensorParallelSize=8,
        model={"id": "qwen3-32b", "source": "Qwen/Qwen3-32B"},
    ).gpu_nodes.hardware

    assert (hardware.name, hardware.gpus, hardware.efa_interfaces, hardware.gpudirect) == ("p9.48xlarge", 8, 32, True)


def test_a_type_of_the_catalogue_is_not_described_again() -> None:
    assert faults(gpuNodes__hardware=HARDWARE) == [
        "ray-llm-eks:gpuNodes.hardware: the catalogue knows g6.8xlarge, and two sources would contradict each other. "
        f"{RM}gpuNodes.hardware'"
    ]


def test_the_gpu_nodes_are_where_the_network_is() -> None:
    assert faults(gpuNodes__zone="us-east-1c") == [
        'ray-llm-eks:gpuNodes.zone is "us-east-1c": ray-llm-eks:network.zones has no subnet there: it holds us-east-1a, us-east-1b. '
        f"{SET}gpuNodes.zone' us-east-1a"
    ]


def test_the_gpu_nodes_are_where_the_existing_network_has_a_subnet() -> None:
    network = {
        "vpcId": "vpc-0123456789abcdef0",
        "privateSubnets": {"us-east-1b": "subnet-0123456789abcdef0", "us-east-1c": "subnet-0123456789abcdef1"},
    }

    assert faults(network=network) == [
        'ray-llm-eks:gpuNodes.zone is "us-east-1a": ray-llm-eks:network.privateSubnets has no subnet there: it holds us-east-1b, '
        f"us-east-1c. {SET}gpuNodes.zone' us-east-1b"
    ]


def test_the_gpu_nodes_are_in_the_region() -> None:
    assert faults(gpuNodes__zone="us-west-2a") == [
        'ray-llm-eks:gpuNodes.zone is "us-west-2a": it is not a zone of the stack\'s region us-east-1. '
        f"{SET}gpuNodes.zone' us-east-1a"
    ]


@pytest.mark.parametrize("kind", ["reservation", "capacityBlock"])
def test_a_reservation_has_an_id(kind: str) -> None:
    assert faults(gpuNodes__capacity={"kind": kind}) == [
        f"ray-llm-eks:gpuNodes.capacity.reservationId: capacity.kind is {kind}, which needs its id. "
        f"{SET}gpuNodes.capacity.reservationId' cr-0123456789abcdef0"
    ]


def test_an_id_has_a_reservation() -> None:
    assert faults(gpuNodes__capacity__reservationId="cr-0123456789abcdef1") == [
        'ray-llm-eks:gpuNodes.capacity.reservationId is "cr-0123456789abcdef1": capacity.kind is onDemand, which uses no '
        f"reservation. {SET}gpuNodes.capacity.kind' reservation (or capacityBlock)"
    ]


@pytest.mark.parametrize("kind", ["reservation", "capacityBlock"])
def test_a_reservation_may_name_its_placement_group(kind: str) -> None:
    capacity = {"kind": kind, "reservationId": "cr-0123456789abcdef1"}

    assert faults(gpuNodes__capacity=capacity, gpuNodes__placementGroup="mine") == []


def test_every_replica_has_a_node() -> None:
    assert faults(decode__replicas=2) == [
        "ray-llm-eks:gpuNodes.count is 2: prefill.replicas 1 + decode.replicas 2 = 3 workers need a node each. "
        f"{SET}gpuNodes.count' 3"
    ]


def test_a_second_cluster_needs_every_node_twice() -> None:
    room = {"service__upgradeStrategy": "NewCluster", "cluster__systemNodes__count": 2}

    assert faults(gpuNodes__count=3, **room) == [
        'ray-llm-eks:service.upgradeStrategy is "NewCluster": an upgrade starts a second cluster beside the first: 2 x 2 workers need '
        f"4 GPU nodes, and gpuNodes.count is 3, so it would wait for ever. {SET}service.upgradeStrategy' None "
        "(or set ray-llm-eks:gpuNodes.count to 4)"
    ]


def test_a_second_cluster_needs_room_for_its_head() -> None:
    assert faults(service__upgradeStrategy="NewCluster", gpuNodes__count=4) == [
        'ray-llm-eks:service.upgradeStrategy is "NewCluster": an upgrade starts a second Ray head, of 2.5 CPU and 8.5 GiB, beside the '
        "first, and 1 x m7i.xlarge with 3.92 CPU and 14.0 GiB each hold one, with the operator and system pods. "
        f"{SET}service.upgradeStrategy' None (or set ray-llm-eks:cluster.systemNodes.count to 2)"
    ]


@pytest.mark.parametrize(("instance", "count"), [("m7i.xlarge", 2), ("m7i.2xlarge", 1)])
def test_a_second_cluster_is_allowed_where_it_has_room(instance: str, count: int) -> None:
    nodes = {"instanceType": instance, "count": count}

    assert faults(service__upgradeStrategy="NewCluster", gpuNodes__count=4, cluster__systemNodes=nodes) == []


def test_a_second_head_is_not_told_where_the_first_has_no_room() -> None:
    small = {"instanceType": "m7i.large", "count": 1}
    upgrade = {"service__upgradeStrategy": "NewCluster", "gpuNodes__count": 4}

    assert faults(cluster__systemNodes=small, **upgrade) == faults(cluster__systemNodes=small)


def test_a_worker_has_no_more_cpus_than_a_node_leaves() -> None:
    assert faults(service__worker__cpu=32) == [
        "ray-llm-eks:service.worker.cpu is 32: a g6.8xlarge has 32 vCPU, of which 31.55 are left for a worker. "
        f"{SET}service.worker.cpu' 31"
    ]


def test_a_worker_has_no_more_memory_than_a_node_leaves() -> None:
    assert faults(service__worker__memory="128Gi") == [
        'ray-llm-eks:service.worker.memory is "128Gi": a g6.8xlarge has 128 GiB, of which huge pages, kubelet and system pods leave '
        f"111.0 GiB at least. {SET}service.worker.memory' 111Gi"
    ]


def test_shared_memory_is_part_of_the_memory() -> None:
    assert faults(service__worker__shmSize="96Gi") == [
        'ray-llm-eks:service.worker.shmSize is "96Gi": what lies in /dev/shm counts as memory of the worker, which has 96Gi. '
        f"{SET}service.worker.shmSize' 24576Mi"
    ]


def test_a_worker_has_cpus_for_its_replica_and_the_ingress() -> None:
    assert faults(service__worker__cpu=1) == [
        "ray-llm-eks:service.worker.cpu is 1: Ray needs 1 CPU for the replica of a worker and 1 for the ingress, which runs on one of "
        f"them: 2; with fewer the application stays DEPLOYING. {SET}service.worker.cpu' 2"
    ]


def test_the_head_and_the_operator_fit_the_system_node() -> None:
    assert faults(cluster__systemNodes__instanceType="m7i.large") == [
        'ray-llm-eks:cluster.systemNodes.instanceType is "m7i.large": the Ray head, the operator and system pods request 3.1 CPU and '
        f"9.6 GiB on one node, and this type offers 1.93 CPU and 6.2 GiB. {SET}cluster.systemNodes.instanceType' m7i.xlarge"
    ]


def test_a_second_system_node_takes_the_operator_but_not_the_head() -> None:
    assert faults(cluster__systemNodes={"instanceType": "c7i.xlarge", "count": 2}) == [
        'ray-llm-eks:cluster.systemNodes.instanceType is "c7i.xlarge": the Ray head and system pods request 2.8 CPU and 9.0 GiB on one '
        f"node, and this type offers 3.92 CPU and 6.2 GiB. {SET}cluster.systemNodes.instanceType' m7i.xlarge"
    ]


@pytest.mark.parametrize("name", ["m7g.xlarge", "t3.xlarge", "g6.8xlarge", "m7i.metal-24xl"])
def test_a_system_node_is_of_a_type_that_can_be_judged(name: str) -> None:
    assert faults(cluster__systemNodes__instanceType=name) == [
        f'ray-llm-eks:cluster.systemNodes.instanceType is "{name}": it must be an x86_64 type of the C, M or R families, generation 5 '
        f"or newer, of a size from large up. {SET}cluster.systemNodes.instanceType' m7i.xlarge"
    ]


def test_the_accelerator_type_is_the_gpu_of_the_nodes() -> None:
    assert faults(service__acceleratorType="A10G") == [
        'ray-llm-eks:service.acceleratorType is "A10G": g6.8xlarge has L4, so no node carries that label and replicas wait for ever. '
        f"{RM}service.acceleratorType' (or set it to L4)"
    ]


@pytest.mark.parametrize(("instance", "gpu"), [("g6.8xlarge", "L4"), ("g6e.8xlarge", "L40S"), ("g5.8xlarge", "A10G")])
def test_the_accelerator_type_of_the_nodes_is_accepted(instance: str, gpu: str) -> None:
    assert faults(gpuNodes__instanceType=instance, service__acceleratorType=gpu) == []


def test_a_gpu_ray_does_not_know_gets_no_accelerator_type() -> None:
    assert faults(gpuNodes__instanceType="g7.8xlarge", service__acceleratorType="RTX PRO 4500") == [
        'ray-llm-eks:service.acceleratorType is "RTX PRO 4500": Ray knows no accelerator type for the RTX PRO 4500 of g7.8xlarge. '
        f"{RM}service.acceleratorType'"
    ]


def test_a_wrong_type_in_one_section_hides_no_rule_of_others() -> None:
    assert faults(gpuNodes__count="2", network__zones=["us-east-1a"], service__worker__cpu=1) == [
        f'ray-llm-eks:gpuNodes.count is "2": it must be a whole number, without quotes. {SET}gpuNodes.count\' 2',
        f'ray-llm-eks:network.zones is ["us-east-1a"]: a control plane needs at least two zones. {SET}network.zones[1]\' us-east-1b',
        *faults(service__worker__cpu=1),
    ]


def test_a_wrong_field_hides_no_rule_that_does_not_read_it() -> None:
    assert faults(gpuNodes__count="2", service__worker__cpu=99, decode__replicas=5) == [
        f'ray-llm-eks:gpuNodes.count is "2": it must be a whole number, without quotes. {SET}gpuNodes.count\' 2',
        *faults(service__worker__cpu=99),
    ]


def test_a_stack_without_its_gpu_nodes_tells_only_that() -> None:
    assert [fault.partition(" ")[0] for fault in faults(gpuNodes=REMOVED)] == ["ray-llm-eks:gpuNodes.zone:"]


def test_memory_too_small_for_any_shared_memory_is_what_has_to_grow() -> None:
    assert faults(service__worker__memory="1Mi", service__worker__shmSize="1Mi") == [
        'ray-llm-eks:service.worker.shmSize is "1Mi": what lies in /dev/shm counts as memory of the worker, which has 1Mi. Type: pulumi '
        "config set --path 'ray-llm-eks:service.worker.memory' 4Mi"
    ]
