"""What a stack's settings mean for each component: the one place where both vocabularies meet.

Each function takes the settings and the components made before, and returns the arguments of the next one.
"""

from components.addon_values import OPERATOR_NAMESPACE
from components.addons import ChartArgs, ClusterAddonsArgs
from components.cluster import Cluster, ClusterArgs
from components.efa_node_group import EfaNodeGroup, EfaNodeGroupArgs
from components.network import Network, NetworkArgs
from components.serve_app import RoleArgs
from components.service import PrefillDecodeServiceArgs
from components.settings.models import Chart, RoleSettings, Settings


def network(settings: Settings) -> NetworkArgs:
    """A new network, or the existing one that the stack names."""
    section = settings.network
    if section.vpc_id is not None:
        return {
            "region": settings.region,
            "vpc_id": section.vpc_id,
            "private_subnets": section.private_subnets,
            "tags": settings.tags,
        }
    return {
        "region": settings.region,
        "cidr": section.cidr,
        "zones": section.zones,
        "nat_gateways": section.nat_gateways,
        "tags": settings.tags,
    }


def cluster(settings: Settings, in_network: Network) -> ClusterArgs:
    """The control plane and its CPU nodes, in every private subnet of the network."""
    section = settings.cluster
    return {
        "kubernetes_version": section.kubernetes_version,
        "vpc_id": in_network.vpc_id,
        "subnet_ids": list(in_network.private_subnet_ids.values()),
        "endpoint": {
            "public": section.endpoint.public,
            "private": section.endpoint.private,
            "public_cidrs": section.endpoint.public_cidrs,
        },
        "system_instance_type": section.system_nodes.instance_type,
        "system_node_count": section.system_nodes.count,
        "egress": in_network.egress,
        "admins": section.admins,
        "log_retention_days": section.log_retention_days,
        "tags": settings.tags,
    }


def gpu_nodes(settings: Settings, in_network: Network, of_cluster: Cluster) -> EfaNodeGroupArgs:
    """The GPU nodes, in the one subnet of their zone."""
    section = settings.gpu_nodes
    return {
        "cluster_name": of_cluster.cluster_name,
        "vpc_id": in_network.vpc_id,
        "cluster_security_group_id": of_cluster.security_group_id,
        "subnet_id": in_network.private_subnet_ids[section.zone],
        "zone": section.zone,
        "instance_type": section.instance_type,
        "node_count": section.count,
        "capacity_kind": section.capacity.kind,
        "reservation_id": section.capacity.reservation_id,
        "placement_group_name": section.placement_group,
        "efa_interfaces": section.hardware.efa_interfaces,
        "network_cards": section.hardware.network_cards,
        "kubernetes_version": settings.cluster.kubernetes_version,
        "egress": in_network.egress,
        "create_timeout_minutes": section.create_timeout_minutes,
        "tags": settings.tags,
    }


def addons(settings: Settings, of_cluster: Cluster, gpu: EfaNodeGroup) -> ClusterAddonsArgs:
    """Both device plugins on the GPU nodes, the operator on the system nodes."""
    section = settings.addons
    return {
        "instance_type": settings.gpu_nodes.instance_type,
        "region": settings.region,
        "nvidia_device_plugin": _chart(section.nvidia_device_plugin),
        "efa_device_plugin": _chart(section.efa_device_plugin),
        "kuberay_operator": _chart(section.kuberay_operator),
        "kuberay_crds": section.kuberay_operator.crds or None,
        "timeout_minutes": section.timeout_minutes,
        "gpu_nodes": [gpu.node_group],
        "system_nodes": [of_cluster.system_node_group, of_cluster.coredns],
    }


def service(settings: Settings) -> PrefillDecodeServiceArgs:
    """The model, its roles and their workers: plain values only."""
    section, model = settings.service, settings.model
    arguments: PrefillDecodeServiceArgs = {
        "name": section.name,
        "namespace": section.namespace,
        "operator_namespace": OPERATOR_NAMESPACE,
        "image": settings.image,
        "ray_version": section.ray_version,
        "model": {
            "id": model.id,
            "source": model.source,
            "max_model_len": model.max_model_len,
            "dtype": model.dtype,
            "gpu_memory_utilization": model.gpu_memory_utilization,
            "enforce_eager": model.enforce_eager,
        },
        "prefill": _role(settings.prefill),
        "decode": _role(settings.decode),
        "gpus": settings.gpu_nodes.hardware.gpus,
        "efa_interfaces": settings.gpu_nodes.hardware.efa_interfaces,
        "worker": {
            "cpu": section.worker.cpu,
            "memory": section.worker.memory,
            "shm_size": section.worker.shm_size,
        },
        "upgrade_strategy": section.upgrade_strategy,
        "ready_timeout_minutes": section.ready_timeout_minutes,
    }
    if section.accelerator_type is not None:
        arguments["accelerator_type"] = section.accelerator_type
    if model.hugging_face_token is not None:
        arguments["hugging_face_token"] = model.hugging_face_token.get_secret_value()
    return arguments


def _chart(chart: Chart) -> ChartArgs:
    return {"repository": chart.repository, "chart": chart.chart, "version": chart.version}


def _role(role: RoleSettings) -> RoleArgs:
    return {
        "replicas": role.replicas,
        "tensor_parallel_size": role.tensor_parallel_size,
        "pipeline_parallel_size": role.pipeline_parallel_size,
        "engine_kwargs": role.engine_kwargs,
    }
