"""Turns a Ray object into one that splits prefill and decode over EFA nodes, with one thing left out."""

import json

import yaml

DEVICES = {"nvidia.com/gpu": "1", "vpc.amazonaws.com/efa": "1"}


def turned(document: dict, without: str) -> dict:
    """The document with a prefill/decode application and workers for it; `without` is efa, privileged, libfabric or nothing."""
    if document["kind"] not in ("RayService", "RayCluster"):
        return document
    transfer: dict = {"kv_connector": "NixlConnector", "kv_role": "kv_both"}
    if without != "libfabric":
        transfer["kv_connector_extra_config"] = {"backends": ["LIBFABRIC"]}
    spec = document["spec"]
    if document["kind"] == "RayService":
        spec["serveConfigV2"] = yaml.safe_dump({"applications": [_application(transfer)]})
    cluster = spec.get("rayClusterConfig", spec)
    for group in cluster["workerGroupSpecs"]:
        group |= {"replicas": 2, "minReplicas": 2, "maxReplicas": 2}
        worker = group["template"]["spec"]["containers"][0]
        _equip(worker, without)
        if document["kind"] == "RayCluster":
            # Nobody reads a Serve configuration here: the workers start vLLM themselves.
            worker["command"] = ["/bin/bash", "-c"]
            worker["args"] = [f"vllm serve acme/tiny --kv-transfer-config '{json.dumps(transfer)}' &"]
    return document


def _application(transfer: dict) -> dict:
    role = {
        "model_loading_config": {"model_id": "tiny", "model_source": "acme/tiny"},
        "engine_kwargs": {"kv_transfer_config": transfer},
    }
    return {
        "name": "tiny",
        "import_path": "ray.serve.llm:build_pd_openai_app",
        "args": {"prefill_config": role, "decode_config": role},
    }


def _equip(worker: dict, without: str) -> None:
    devices = {name: count for name, count in DEVICES.items() if without != "efa" or name == "nvidia.com/gpu"}
    for kind in ("limits", "requests"):
        kept = {name: amount for name, amount in worker["resources"][kind].items() if name not in DEVICES}
        worker["resources"][kind] = kept | devices
    worker.setdefault("env", []).append({"name": "FI_PROVIDER", "value": "efa"})
    if without != "privileged":
        worker["securityContext"] = {"privileged": True}
