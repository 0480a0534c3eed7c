"""Records the schemas of KubeRay's custom resources: ``python -m sandbox.kubernetes.record_kuberay`` (needs Go).

They are read from the operator's Go module, which carries the generated CustomResourceDefinitions. Descriptions are
dropped, and what the definitions embed of Kubernetes' own API (pod specs, services, ...) becomes a reference to the
definition of that name, so that 4 MB become a few kilobytes and pods are judged by one set of rules everywhere.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import yaml

MODULE: Final = "github.com/ray-project/kuberay/ray-operator"
TAG: Final = "v1.6.0"
FILES: Final = tuple(
    f"config/crd/bases/ray.io_{plural}.yaml" for plural in ("rayclusters", "raycronjobs", "rayjobs", "rayservices")
)
FIXTURE: Final = Path(__file__).with_name("kuberay_crds.json")

_CORE = "io.k8s.api.core.v1."
# Which embedded type an object of a CRD is, told by fields that no other embedded type has together.
_EMBEDDED: Final = {
    _CORE + "PodSpec": {"containers", "initContainers", "nodeSelector"},
    _CORE + "ServiceSpec": {"clusterIP", "externalName", "ports"},
    _CORE + "ServiceStatus": {"loadBalancer", "conditions"},
    _CORE + "EnvVarSource": {"fieldRef", "secretKeyRef"},
    _CORE + "EnvVar": {"name", "value", "valueFrom"},
    _CORE + "EnvFromSource": {"configMapRef", "secretRef", "prefix"},
    _CORE + "VolumeMount": {"mountPath", "subPath", "readOnly"},
    _CORE + "SecurityContext": {"privileged", "capabilities"},
    _CORE + "ResourceRequirements": {"claims", "limits", "requests"},
    "ObjectMeta": {"annotations", "finalizers", "labels", "name", "namespace"},
}
_KEPT = (
    *(
        "type",
        "required",
        "enum",
        "pattern",
        "minimum",
        "maximum",
        "minLength",
        "maxLength",
        "minItems",
        "format",
        "default",
    ),
    *("nullable", "x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields"),
    *("x-kubernetes-list-type", "x-kubernetes-list-map-keys"),
)


def record(source: Path) -> dict[str, Any]:
    """The fixture's content, from the module unpacked at ``source``."""
    kinds: dict[str, Any] = {}
    for file in FILES:
        crd = yaml.load((source / file).read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        group, kind = crd["spec"]["group"], crd["spec"]["names"]["kind"]
        for version in crd["spec"]["versions"]:
            if version["served"]:
                schema = _compact(version["schema"]["openAPIV3Schema"])
                # The operator writes it, nobody else does.
                schema["properties"].pop("status", None)
                kinds[f"{group}/{version['name']}/{kind}"] = schema
    return {
        "source": {
            "repository": "https://github.com/ray-project/kuberay",
            "module": MODULE,
            "tag": TAG,
            "files": list(FILES),
        },
        "kinds": kinds,
    }


def _compact(schema: dict[str, Any]) -> dict[str, Any]:
    fields = schema.get("properties", {})
    for name, signature in _EMBEDDED.items():
        if signature <= set(fields) and (name != "ObjectMeta" or signature == set(fields)):
            return {"$ref": f"#/$defs/{name}"}
    kept = {key: schema[key] for key in _KEPT if key in schema}
    if fields:
        kept["properties"] = {name: _compact(member) for name, member in fields.items()}
    if "items" in schema:
        kept["items"] = _compact(schema["items"])
    if isinstance(schema.get("additionalProperties"), dict):
        kept["additionalProperties"] = _compact(schema["additionalProperties"])
    return kept


def download() -> Path:
    """Where Go put the module's files.

    Raises:
        subprocess.CalledProcessError: Go could not get it.
    """
    answer = subprocess.run(
        ["go", "mod", "download", "-json", f"{MODULE}@{TAG}"], check=True, capture_output=True, text=True, cwd="/"
    )
    return Path(json.loads(answer.stdout)["Dir"])


def text(fixture: dict[str, Any]) -> str:
    """The fixture as it stands in the file."""
    return json.dumps(fixture, indent=1, sort_keys=True) + "\n"


if __name__ == "__main__":
    FIXTURE.write_text(text(record(download())))
    print(f"wrote {FIXTURE}", file=sys.stderr)
