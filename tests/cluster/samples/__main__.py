"""Deploys one of the YAML files beside it; `without` turns it into a prefill/decode service that lacks this."""

from pathlib import Path

import prefill_decode
import pulumi
import pulumi_kubernetes as k8s
import yaml

config = pulumi.Config()
sample, without = config.require("sample"), config.get("without")
documents = list(yaml.safe_load_all((Path(__file__).parent / f"{sample}.yaml").read_text()))
if without is not None:
    documents = [prefill_decode.turned(one, without) for one in documents]

provider = k8s.Provider("cluster", kubeconfig=config.require("kubeconfig"))
k8s.yaml.v2.ConfigGroup(
    sample,
    yaml=yaml.safe_dump_all(documents),
    opts=pulumi.ResourceOptions(providers=[provider]),
)
