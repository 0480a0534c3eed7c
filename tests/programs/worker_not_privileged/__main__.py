"""A platform team's component; the worker gets IPC_LOCK, which is not enough to register GPU memory with EFA."""

import pulumi
import pulumi_kubernetes as k8s
import yaml

IMAGE = "registry.example.com/ray-llm:2.58.0"


class LlmService(pulumi.ComponentResource):
    """A prefill/decode service with one worker group per role."""

    def __init__(self, name: str, security_context: dict, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("acme:index:LlmService", name, None, opts)
        self._security_context = security_context
        k8s.apiextensions.CustomResource(
            f"{name}-rayservice",
            api_version="ray.io/v1",
            kind="RayService",
            metadata={"name": name, "namespace": "default"},
            spec={
                "serveConfigV2": self._serve(),
                "rayClusterConfig": {
                    "headGroupSpec": {
                        "rayStartParams": {},
                        # Privileges of the head help nobody: it moves no KV cache.
                        "template": {
                            "spec": {
                                "containers": [
                                    {"name": "head", "image": IMAGE, "securityContext": {"privileged": True}}
                                ]
                            }
                        },
                    },
                    "workerGroupSpecs": [self._group("prefill"), self._group("decode")],
                },
            },
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.register_outputs({})

    def _serve(self) -> str:
        roles = {
            f"{role}_config": {
                "model_loading_config": {"model_id": "tiny", "model_source": "acme/tiny"},
                "engine_kwargs": {
                    "kv_transfer_config": {
                        "kv_connector": "NixlConnector",
                        "kv_role": kv_role,
                        "kv_connector_extra_config": {"backends": ["LIBFABRIC"]},
                    }
                },
            }
            for role, kv_role in (("prefill", "kv_producer"), ("decode", "kv_consumer"))
        }
        return yaml.safe_dump(
            {
                "applications": [
                    {
                        "name": "llm",
                        "import_path": "ray.serve.llm:build_pd_openai_app",
                        "runtime_env": {"env_vars": {"FI_PROVIDER": "efa"}},
                        "args": roles,
                    }
                ]
            }
        )

    def _group(self, role: str) -> dict:
        devices = {"nvidia.com/gpu": 1, "vpc.amazonaws.com/efa": 1}
        return {
            "groupName": role,
            "replicas": 1,
            "minReplicas": 1,
            "maxReplicas": 1,
            "rayStartParams": {},
            "template": {
                "spec": {
                    "containers": [
                        {
                            "name": "worker",
                            "image": IMAGE,
                            "securityContext": self._security_context,
                            "resources": {"limits": devices, "requests": devices},
                        }
                    ]
                }
            },
        }


corrected = pulumi.Config().get_bool("corrected")
LlmService("llm", {"privileged": True} if corrected else {"capabilities": {"add": ["IPC_LOCK"]}})
