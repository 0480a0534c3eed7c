"""The charts themselves: recorded values under templates of our own, which put the same pods on the same nodes.

Helm judges values by ``values.schema.json``: a key that was not recorded is refused, and so is a value that these templates do
not honour when it is not the default. Where a template follows the real one, the comment names its file and line at the
recorded tag.
"""

import io
import json
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

from sandbox.charts.record import RECORDED

_COMMON: Final = ("image", "imagePullSecrets", "nodeSelector", "resources", "securityContext", "tolerations")
_HONOURED: Final[Mapping[str, tuple[str, ...]]] = {
    "kuberay-operator": (
        *_COMMON,
        *("affinity", "annotations", "env", "labels", "podSecurityContext", "priorityClassName", "replicas"),
        *("serviceAccount",),
    ),
    "nvidia-device-plugin": (
        *_COMMON,
        *(
            "affinity",
            "podAnnotations",
            "podSecurityContext",
            "priorityClassName",
            "runtimeClassName",
            "updateStrategy",
        ),
    ),
    "aws-efa-k8s-device-plugin": (
        *_COMMON,
        *("additionalPodAnnotations", "additionalPodLabels", "supportedInstanceLabels", "updateStrategy"),
    ),
}
"""Chart -> top-level values that its template takes; all other values are what they are by default, or refused."""


@dataclass(frozen=True)
class Chart:
    """A recorded chart: name, version, and what it says of itself."""

    name: str
    version: str
    app_version: str
    values: Mapping[str, Any]
    schema: Mapping[str, Any]

    @property
    def about(self) -> dict[str, Any]:
        """Its Chart.yaml."""
        about = {"apiVersion": "v2", "name": self.name, "version": self.version, "type": "application"}
        return {**about, "appVersion": self.app_version or self.version, "description": "recorded for the sandbox"}

    def archive(self, crds: Path | None = None) -> bytes:
        """The chart as Helm downloads it; ``crds`` is a folder that goes into it as its own."""
        files = {
            "Chart.yaml": yaml.safe_dump(self.about),
            "values.yaml": yaml.safe_dump(self.values),
            "values.schema.json": json.dumps(self.schema),
            "templates/all.yaml": _TEMPLATES[self.name],
        }
        for one in sorted(crds.glob("*.yaml")) if crds else ():
            files[f"crds/{one.name}"] = one.read_text()
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as archive:
            for path, text in files.items():
                content = text.encode()
                entry = tarfile.TarInfo(f"{self.name}/{path}")
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
        return packed.getvalue()


@cache
def charts() -> Mapping[str, Chart]:
    """The recorded charts, by name."""
    recorded = json.loads(RECORDED.read_text())
    return {
        name: Chart(name, found["version"], found["appVersion"], _values(found), _schema(name, found))
        for name, found in recorded.items()
    }


def _values(found: Mapping[str, Any]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for one in found["values"]:
        *path, last = one["key"].split(".")
        place = values
        for step in path:
            place = place.setdefault(step, {})
        place[last] = one["default"]
    return values


def _schema(name: str, found: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON schema that knows the recorded keys only; ``global`` is Helm's own."""
    root: dict[str, Any] = {"type": "object", "additionalProperties": False, "properties": {"global": {}}}
    for one in found["values"]:
        path = one["key"].split(".")
        place = root
        for step in path[:-1]:
            made = place["properties"].setdefault(
                step, {"type": "object", "additionalProperties": False, "properties": {}}
            )
            place = made
        place["properties"][path[-1]] = {} if path[0] in _HONOURED[name] else {"const": one["default"]}
    for free in ("resources", "securityContext", "affinity"):
        if free in _HONOURED[name]:
            # Kubernetes' own types: more keys than the defaults have.
            root["properties"][free] = {"type": "object"}
    return root


_OPERATOR: Final = """\
{{- if .Values.serviceAccount.create }}
apiVersion: v1
kind: ServiceAccount
metadata: {name: {{ .Values.serviceAccount.name }}, namespace: {{ .Release.Namespace }}}
---
{{- end }}
apiVersion: v1
kind: Service
metadata: {name: {{ .Values.fullnameOverride }}, namespace: {{ .Release.Namespace }}}
spec:
  type: {{ .Values.service.type }}
  ports: [{name: http, port: {{ .Values.service.port }}, targetPort: http}]
  selector: {app.kubernetes.io/name: {{ .Values.nameOverride }}, app.kubernetes.io/instance: {{ .Release.Name }}}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Values.fullnameOverride }}
  namespace: {{ .Release.Namespace }}
  labels: {{ merge (dict "app.kubernetes.io/name" .Values.nameOverride) .Values.labels | toJson }}
spec:
  replicas: {{ .Values.replicas }}
  strategy: {type: Recreate}
  selector:
    matchLabels: {app.kubernetes.io/name: {{ .Values.nameOverride }}, app.kubernetes.io/instance: {{ .Release.Name }}}
  template:
    metadata:
      labels: {{ merge (dict "app.kubernetes.io/name" .Values.nameOverride "app.kubernetes.io/instance" .Release.Name
        "app.kubernetes.io/component" .Values.componentOverride) .Values.labels | toJson }}
      annotations: {{ .Values.annotations | toJson }}
    spec:
      serviceAccountName: {{ .Values.serviceAccount.name }}
      imagePullSecrets: {{ .Values.imagePullSecrets | toJson }}
      priorityClassName: {{ .Values.priorityClassName | quote }}
      securityContext: {{ .Values.podSecurityContext | toJson }}
      nodeSelector: {{ .Values.nodeSelector | toJson }}
      affinity: {{ .Values.affinity | toJson }}
      tolerations: {{ .Values.tolerations | toJson }}
      containers:
        - name: kuberay-operator
          image: "{{ .Values.image.repository }}:{{ .Values.image.tag }}"
          imagePullPolicy: {{ .Values.image.pullPolicy }}
          command: [{{ .Values.operatorCommand }}]
          ports: [{name: http, containerPort: 8080}]
          env: {{ .Values.env | default list | toJson }}
          resources: {{ .Values.resources | toJson }}
          securityContext: {{ .Values.securityContext | toJson }}
          livenessProbe: {{ merge (dict "httpGet" (dict "path" "/metrics" "port" "http")) .Values.livenessProbe | toJson }}
          readinessProbe: {{ merge (dict "httpGet" (dict "path" "/metrics" "port" "http")) .Values.readinessProbe | toJson }}
"""
# templates/deployment.yaml: 13 (Recreate), 15 (selector), 56 and 64 (security contexts), 157 and 164 (probes), 173 (nodeSelector).
# Its roles are left out: the operator's process has the sandbox's own rights.

_NVIDIA: Final = """\
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: {{ .Release.Name }}, namespace: {{ .Release.Namespace }}}
spec:
  selector:
    matchLabels: {app.kubernetes.io/name: nvidia-device-plugin, app.kubernetes.io/instance: {{ .Release.Name }}}
  updateStrategy: {{ .Values.updateStrategy | toJson }}
  template:
    metadata:
      labels: {app.kubernetes.io/name: nvidia-device-plugin, app.kubernetes.io/instance: {{ .Release.Name }}}
      annotations: {{ .Values.podAnnotations | toJson }}
    spec:
      priorityClassName: {{ .Values.priorityClassName | quote }}
      {{- with .Values.runtimeClassName }}
      runtimeClassName: {{ . }}
      {{- end }}
      imagePullSecrets: {{ .Values.imagePullSecrets | toJson }}
      securityContext: {{ .Values.podSecurityContext | toJson }}
      nodeSelector: {{ .Values.nodeSelector | toJson }}
      affinity: {{ .Values.affinity | toJson }}
      tolerations: {{ .Values.tolerations | toJson }}
      containers:
        - name: nvidia-device-plugin-ctr
          image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default (printf "v%s" .Chart.AppVersion) }}"
          imagePullPolicy: {{ .Values.image.pullPolicy }}
          resources: {{ .Values.resources | toJson }}
          securityContext: {{ .Values.securityContext | default (dict "allowPrivilegeEscalation" false
            "capabilities" (dict "drop" (list "ALL"))) | toJson }}
          volumeMounts: [{name: plugins, mountPath: /var/lib/kubelet/device-plugins}]
      volumes:
        - {name: plugins, hostPath: {path: /var/lib/kubelet/device-plugins, type: Directory}}
"""
# templates/daemonset-device-plugin.yml; the default security context is that of templates/_helpers.tpl (securityContext).

_EFA: Final = """\
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: {{ .Release.Name }}, namespace: {{ .Release.Namespace }}}
spec:
  selector: {matchLabels: {name: {{ .Release.Name }}}}
  updateStrategy: {{ .Values.updateStrategy | toJson }}
  template:
    metadata:
      labels: {{ merge (dict "name" .Release.Name) .Values.additionalPodLabels | toJson }}
      annotations: {{ .Values.additionalPodAnnotations | toJson }}
    spec:
      automountServiceAccountToken: false
      hostNetwork: true
      priorityClassName: system-node-critical
      imagePullSecrets: {{ .Values.imagePullSecrets | toJson }}
      nodeSelector: {{ .Values.nodeSelector | toJson }}
      tolerations: {{ prepend .Values.tolerations (dict "key" "CriticalAddonsOnly" "operator" "Exists") | toJson }}
      affinity:
        nodeAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            nodeSelectorTerms:
              {{- range .Values.supportedInstanceLabels.keys }}
              - matchExpressions:
                  - {key: {{ . }}, operator: In, values: {{ $.Values.supportedInstanceLabels.values | toJson }}}
              {{- end }}
      containers:
        - name: aws-efa-k8s-device-plugin
          image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
          resources: {{ .Values.resources | toJson }}
          securityContext: {{ .Values.securityContext | toJson }}
          volumeMounts:
            - {name: plugins, mountPath: /var/lib/kubelet/device-plugins}
            - {name: infiniband, mountPath: /dev/infiniband/}
      volumes:
        - {name: plugins, hostPath: {path: /var/lib/kubelet/device-plugins}}
        - {name: infiniband, hostPath: {path: /dev/infiniband/}}
"""
# templates/daemonset.yaml: tolerations after CriticalAddonsOnly, one affinity term for each supported label, host network.

_TEMPLATES: Final[Mapping[str, str]] = {
    "kuberay-operator": _OPERATOR,
    "nvidia-device-plugin": _NVIDIA,
    "aws-efa-k8s-device-plugin": _EFA,
}
