"""Resources that nobody wrote for this pack, restated from public samples: judged right, or left alone."""

from typing import Any

from tests.policies import samples
from tests.policies.analyzer import UNKNOWN, Resource


def pod(container: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {"spec": {"containers": [container], **spec}}


def limits(**amounts: Any) -> dict[str, Any]:
    return {"resources": {"limits": amounts, "requests": amounts}}


def service(serve: str, worker: dict[str, Any], **group: Any) -> Resource:
    head = pod({"name": "ray-head", "image": "rayproject/ray:2.52.0", **limits(cpu="2", memory="5Gi")})
    cluster = {
        "rayVersion": "2.52.0",
        "headGroupSpec": {"rayStartParams": {}, "template": head},
        "workerGroupSpecs": [{"groupName": "small", "replicas": 1, "template": worker, **group}],
    }
    return Resource(
        "kubernetes:ray.io/v1:RayService", "foreign", {"spec": {"serveConfigV2": serve, "rayClusterConfig": cluster}}
    )


def test_kuberays_fruit_stand_service_is_left_alone(preview, pack):
    """ray-project/kuberay ray-operator/config/samples/ray-service.sample.yaml."""
    serve = """
applications:
  - name: fruit_app
    import_path: fruit.deployment_graph
    route_prefix: /fruit
    runtime_env: {working_dir: "https://example.com/test_dag.zip"}
    deployments:
      - {name: MangoStand, num_replicas: 2, user_config: {price: 3}, ray_actor_options: {num_cpus: 0.1}}
"""
    fruit = service(serve, pod({"name": "ray-worker", **limits(cpu="500m", memory="2Gi")}))
    assert preview([fruit]) == []
    assert set(pack.not_applicable(fruit)) >= {
        "ray-worker-requests-efa",
        "ray-worker-privileged",
        "nixl-backend-libfabric",
    }


def test_kuberays_llm_service_without_kv_transfer_is_left_alone(preview):
    """ray-project/kuberay ray-operator/config/samples/ray-service.llm-serve.yaml."""
    serve = """
applications:
- name: llms
  import_path: ray.serve.llm:build_openai_app
  args:
    llm_configs:
    - model_loading_config: {model_id: qwen2.5-7b-instruct, model_source: Qwen/Qwen2.5-7B-Instruct}
      engine_kwargs: {dtype: bfloat16, max_model_len: 1024}
"""
    token = {"name": "HUGGING_FACE_HUB_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hf-token", "key": "hf_token"}}}
    worker = pod({"name": "ray-worker", "env": [token], **limits(cpu="32", memory="32Gi", **{"nvidia.com/gpu": "4"})})
    assert preview([service(serve, worker, rayStartParams={"num-gpus": "4"})]) == []


def test_kuberays_plain_cluster_and_job_are_left_alone(preview):
    """ray-project/kuberay ray-operator/config/samples/ray-cluster.sample.yaml and ray-job.sample.yaml."""
    group = {"groupName": "workergroup", "replicas": 1, "rayStartParams": {}, "template": pod({"name": "ray-worker"})}
    cluster = {"headGroupSpec": {"template": pod({"name": "ray-head"})}, "workerGroupSpecs": [group]}
    job = {"entrypoint": "python sample_code.py", "runtimeEnvYAML": "pip: [requests]", "rayClusterSpec": cluster}
    assert (
        preview(
            [
                Resource("kubernetes:ray.io/v1:RayCluster", "raycluster-kuberay", {"spec": cluster}),
                Resource("kubernetes:ray.io/v1:RayJob", "rayjob-sample", {"spec": job}),
                Resource("kubernetes:ray.io/v1:RayCluster", "head-only", {"spec": {"headGroupSpec": {}}}),
            ]
        )
        == []
    )


def test_rays_prefill_decode_guide_misses_the_backend_on_both_roles(preview):
    """ray-project/ray doc/source/serve/llm: the prefill/decode guide names NixlConnector and no backends."""
    serve = """
applications:
  - name: pd
    route_prefix: "/"
    import_path: ray.serve.llm:build_pd_openai_app
    args:
      prefill_config:
        model_loading_config: {model_id: llama, model_source: meta-llama/Llama-3.1-8B-Instruct}
        engine_kwargs: {kv_transfer_config: {kv_connector: NixlConnector, kv_role: kv_both}}
      decode_config:
        model_loading_config: {model_id: llama, model_source: meta-llama/Llama-3.1-8B-Instruct}
        engine_kwargs: {kv_transfer_config: {kv_connector: NixlConnector, kv_role: kv_both}}
"""
    found = preview([service(serve, pod({"name": "w", **limits(**{"nvidia.com/gpu": 1})}))])
    by_policy = {item.policy: [] for item in found}
    for item in found:
        by_policy[item.policy].append(item.message)
    assert set(by_policy) == {"nixl-backend-libfabric", "ray-worker-requests-efa", "ray-worker-privileged"}
    assert len([text for text in by_policy["nixl-backend-libfabric"] if "backends is missing" in text]) == 2
    assert len([text for text in by_policy["nixl-backend-libfabric"] if "env[FI_PROVIDER] is missing" in text]) == 1


def test_a_managed_cpu_group_on_all_private_subnets_is_left_alone(preview):
    """pulumi/examples aws-py-eks: a node group over the zones of the default VPC, with a size and a role and no more."""
    subnets = [samples.subnet(f"subnet-{zone}", f"us-west-2{zone}") for zone in "abc"]
    scaling = {"desiredSize": 2, "maxSize": 2, "minSize": 1}
    assert preview([*subnets, samples.cpu_group(subnets, scalingConfig=scaling, tags={"Name": "pulumi-nodes"})]) == []


def test_a_managed_gpu_group_on_all_private_subnets_is_stopped(preview):
    """The usual GPU group of EKS tutorials: a GPU AMI, a G type, and every private subnet of the VPC."""
    subnets = [samples.subnet(f"private-{zone}", f"us-west-2{zone}") for zone in "ab"]
    group = samples.cpu_group(subnets, amiType="AL2_x86_64_GPU", instanceTypes=["g5.2xlarge"])
    (item,) = preview([*subnets, group])
    assert item.policy == "gpu-node-group-single-az"
    assert "us-west-2a and us-west-2b" in item.message


def test_karpenters_general_purpose_pool_is_left_alone(preview):
    """The getting-started guide of karpenter.sh: on-demand Linux nodes of the c, m and r categories in any zone."""
    requirements = [
        {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
        {"key": "karpenter.k8s.aws/instance-category", "operator": "In", "values": ["c", "m", "r"]},
        {"key": "karpenter.k8s.aws/instance-generation", "operator": "Gt", "values": ["2"]},
    ]
    spec = {
        "requirements": requirements,
        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
    }
    assert (
        preview([Resource("kubernetes:karpenter.sh/v1:NodePool", "default", {"spec": {"template": {"spec": spec}}})])
        == []
    )


def test_an_nccl_training_cluster_that_does_everything_right_is_left_alone(preview):
    group = samples.worker("train")
    del group["template"]["spec"]["containers"][0]["env"]
    cluster = Resource("kubernetes:ray.io/v1:RayCluster", "train", {"spec": {"workerGroupSpecs": [group]}})
    assert preview([cluster]) == []


def test_other_kinds_of_the_same_providers_are_left_alone(preview):
    deployment = {"spec": {"template": {"spec": {"nodeSelector": {"node.kubernetes.io/instance-type": "p5.48xlarge"}}}}}
    assert (
        preview(
            [
                Resource("kubernetes:apps/v1:Deployment", "d", deployment),
                Resource("kubernetes:core/v1:Namespace", "n", {"metadata": {"name": UNKNOWN}}),
                Resource("kubernetes:ray.io/v1:RayClusterReplica", "r", {"spec": UNKNOWN}),
                Resource("aws:ec2/instance:Instance", "i", {"instanceType": "g6.8xlarge", "subnetId": UNKNOWN}),
            ]
        )
        == []
    )
