"""The RayService under its bare type token, without any Kubernetes class; one of its two groups asks for zero EFA devices."""

import pulumi

IMAGE = "registry.example.com/ray-llm:2.58.0"
decode_devices = 1 if pulumi.Config().get_bool("corrected") else 0

SERVE = """
applications:
- name: llm
  import_path: ray.serve.llm:build_pd_openai_app
  args:
    prefill_config:
      model_loading_config: {model_id: tiny, model_source: acme/tiny}
      engine_kwargs:
        kv_transfer_config: &transfer
          kv_connector: NixlConnector
          kv_role: kv_both
          kv_connector_extra_config: {backends: [LIBFABRIC]}
    decode_config:
      model_loading_config: {model_id: tiny, model_source: acme/tiny}
      engine_kwargs:
        kv_transfer_config: *transfer
"""


def group(name: str, efa: int) -> dict:
    """One worker group."""
    return {
        "groupName": name,
        "replicas": 1,
        "minReplicas": 1,
        "maxReplicas": 1,
        "rayStartParams": {},
        "template": {
            "spec": {
                "containers": [
                    {
                        "name": "ray",
                        "image": IMAGE,
                        "env": [{"name": "FI_PROVIDER", "value": "efa"}],
                        "securityContext": {"privileged": True, "runAsUser": 0},
                        "resources": {"limits": {"nvidia.com/gpu": 1, "vpc.amazonaws.com/efa": efa}},
                    },
                    # Only the first container is Ray's: devices of a second one do not help.
                    {"name": "telemetry", "image": IMAGE, "resources": {"limits": {"cpu": "100m"}}},
                ]
            }
        },
    }


pulumi.CustomResource(
    "kubernetes:ray.io/v1:RayService",
    "llm",
    {
        "apiVersion": "ray.io/v1",
        "kind": "RayService",
        "metadata": {"name": "llm", "namespace": "default"},
        "spec": {
            "serveConfigV2": SERVE,
            "rayClusterConfig": {
                "headGroupSpec": {
                    "rayStartParams": {"num-cpus": "0"},
                    "template": {"spec": {"containers": [{"name": "head", "image": IMAGE}]}},
                },
                "workerGroupSpecs": [group("prefill", 1), group("decode", decode_devices)],
            },
        },
    },
)
