"""One large language model over several EFA GPU nodes on Amazon EKS: settings in, components, outputs out."""

import pulumi

from components import arguments
from components.addons import ClusterAddons
from components.cluster import Cluster
from components.efa_node_group import EfaNodeGroup
from components.faults import faults_end_the_program
from components.network import Network
from components.service import PrefillDecodeService
from components.settings import load, notes

with faults_end_the_program():
    settings = load()
    for note in notes(settings):
        pulumi.log.warn(note)

    network = Network("ray-llm-network", arguments.network(settings))
    cluster = Cluster("ray-llm-cluster", arguments.cluster(settings, network))
    gpu = EfaNodeGroup("ray-llm-gpu", arguments.gpu_nodes(settings, network, cluster))

    in_cluster = pulumi.ResourceOptions(providers=[cluster.provider])
    addons = ClusterAddons("ray-llm-addons", arguments.addons(settings, cluster, gpu), in_cluster)
    service = PrefillDecodeService(
        "ray-llm-service",
        arguments.service(settings),
        pulumi.ResourceOptions.merge(
            in_cluster,
            # Everything a worker needs before it starts, and everything that must outlive it in a destroy.
            pulumi.ResourceOptions(
                depends_on=[
                    addons.kuberay_crds,
                    addons.kuberay_operator,
                    addons.nvidia_device_plugin,
                    addons.efa_device_plugin,
                    gpu.node_group,
                ]
            ),
        ),
    )

    pulumi.export("clusterName", cluster.cluster_name)
    pulumi.export("kubeconfig", cluster.kubeconfig)
    pulumi.export("endpoint", service.endpoint)
    pulumi.export("gpuZone", gpu.zone)
    pulumi.export("modelId", service.model_id)
