"""Manifests that programs name by URL. The sandbox fetches nothing: it answers what it has recorded, and says the rest."""

import re
from typing import Any, Final

from sandbox.kubernetes import schemas

# The CRD files of a KubeRay release: of its chart, or of the operator's own kustomization.
_KUBERAY_CRD: Final = re.compile(r"/kuberay/(?:[^/]+/)?(?P<tag>v[^/]+)/.*/ray\.io_(?P<plural>ray\w+)\.yaml$")
_STORED: Final = "v1"


def objects(url: str) -> list[dict[str, Any]] | None:
    """The objects behind a URL, or None when the sandbox does not have them."""
    found = _KUBERAY_CRD.search(url)
    if found is None or found["tag"] != schemas.kuberay_tag():
        return None
    plural = found["plural"]
    kinds = [kind for kind in schemas.custom_kinds() if f"{kind.name.lower()}s" == plural]
    if not kinds:
        return None
    group, kind = kinds[0].api_version.partition("/")[0], kinds[0].name
    names = {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()}
    return [
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.{group}"},
            "spec": {
                "group": group,
                "names": names,
                "scope": "Namespaced",
                "versions": [_version(one) for one in sorted(kinds, key=lambda one: one.api_version)],
            },
        }
    ]


def _version(kind: schemas.Kind) -> dict[str, Any]:
    name = kind.api_version.partition("/")[2]
    return {
        "name": name,
        "served": True,
        "storage": name == _STORED,
        "schema": {"openAPIV3Schema": dict(kind.schema)},
    }
