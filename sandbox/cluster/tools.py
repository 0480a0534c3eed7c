"""The programs of the real Kubernetes, got once into a cache that checkouts share.

Nobody publishes them in a package registry, so they are built from their Go modules; Pulumi's provider plugin only where its
official download does not answer.
"""

import importlib.metadata
import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from sandbox import cli
from sandbox.cluster.go_build import BuildError, Go, Module, Say, fingerprint, step, workshop

KUBERNETES = "1.35.4"
KUBERAY = "1.6.0"
KWOK = "0.7.0"
"""The newest that builds against Kubernetes 1.35; 0.8.0 requires 1.36 (its go.mod)."""

PLUGIN = importlib.metadata.version("pulumi-kubernetes")
"""The version of the provider plugin that the engine asks for: that of the installed SDK."""
PLUGIN_SOURCE = "4.25.0"
"""The release that is built: the newest that is served as a Go module. Its pseudo-version names the commit of this tag."""

_KWOK = Module("sigs.k8s.io/kwok", f"v{KWOK}", "h1:+eGsNOIPapjsSzeZlOEcwbpyEVa2Vqlcafa0qIjaKV4=")
_PLUGIN = Module(
    "github.com/pulumi/pulumi-kubernetes/provider/v4",
    "v4.0.0-20260115033456-f47bc2d6f199",
    "h1:j2bphCf7c2YhnBrhwht2f3TNRRgcMImltUlAgzxr9H4=",
)
_KUBERAY = "github.com/ray-project/kuberay/ray-operator"

# What Kubernetes' own hack/lib/version.sh sets; without it the server says that it is v0.0.0.
_KUBERNETES_STAMPS = {
    f"k8s.io/{package}.{name}": value
    for package in ("component-base/version", "client-go/pkg/version")
    for name, value in {
        "gitVersion": f"v{KUBERNETES}",
        "gitMajor": KUBERNETES.split(".")[0],
        "gitMinor": KUBERNETES.split(".")[1],
        "gitTreeState": "clean",
    }.items()
}
# The set that KWOK calls fast (kustomize/stage/fast): a node is Ready at once, as is a pod on it; a Job's pod ends well.
_STAGES = (
    "node/fast/node-initialize",
    "node/heartbeat-with-lease/node-heartbeat-with-lease",
    "pod/fast/pod-ready",
    "pod/fast/pod-complete",
    "pod/fast/pod-delete",
)
# A slower download is given up for the build, which takes minutes itself.
_DOWNLOAD_SECONDS = 120.0


class ToolsError(cli.CliError):
    """The real Kubernetes cannot be had; the text says why in one line, and what to install."""


@dataclass(frozen=True)
class Tools:
    """The programs, and what comes with them.

    Attributes:
        kubestack: etcd, kube-apiserver, kube-controller-manager or kube-scheduler, as its first argument says.
        kwok: plays the kubelets.
        operator: KubeRay's operator.
        provider: Pulumi's plugin pulumi-resource-kubernetes, which says that it is ``PLUGIN``.
        provider_version: the release that it really is: ``PLUGIN`` where it was downloaded, ``PLUGIN_SOURCE`` where it was built.
        stages: one YAML file with what KWOK makes of nodes and pods.
        ray_crds: a folder with one YAML file per CRD of KubeRay.
    """

    kubestack: Path
    kwok: Path
    operator: Path
    provider: Path
    provider_version: str
    stages: Path
    ray_crds: Path


def find(say: Say) -> Tools:
    """Returns the programs, getting those that are missing; ``say`` gets two lines a step, the second with its seconds.

    Raises:
        ToolsError: something is missing, and Go is too or is too old, or a module cannot be fetched, or a build fails.
    """
    folder = _folder()
    if (found := _cached(folder)) is not None:
        return found
    try:
        with workshop(folder, say) as go:
            _complete(folder, go, say)
    except BuildError as fault:
        raise ToolsError(f"no real Kubernetes for the sandbox: {fault}") from None
    found = _cached(folder)
    assert found is not None
    return found


def _folder() -> Path:
    versions = f"{KUBERNETES}-kuberay-{KUBERAY}-kwok-{KWOK}-plugin-{PLUGIN}-{fingerprint()}"
    return cli.cache_directory() / f"kubernetes-{versions}"


def _cached(folder: Path) -> Tools | None:
    version = PLUGIN if _plugin(folder, PLUGIN).exists() else PLUGIN_SOURCE
    tools = Tools(
        kubestack=folder / "kubestack",
        kwok=folder / "kwok",
        operator=folder / "kuberay-operator",
        provider=_plugin(folder, version),
        provider_version=version,
        stages=folder / "stages.yaml",
        ray_crds=folder / "ray-crds",
    )
    programs = (tools.kubestack, tools.kwok, tools.operator, tools.provider)
    return tools if all(program.exists() for program in programs) else None


def _plugin(folder: Path, version: str) -> Path:
    return folder / f"pulumi-resource-kubernetes-{version}"


def _complete(folder: Path, go: Go, say: Say) -> None:
    """Makes what is missing in ``folder``. A program appears there whole, and after what comes with it."""
    kwok, plugin = _changed_modules(go)
    if not (program := folder / "kubestack").exists():
        names = "etcd, kube-apiserver, kube-controller-manager and kube-scheduler"
        with step(f"Building {names} {KUBERNETES} (about 6 minutes on 2 cores, once)", say):
            go.build("./kubestack", program, _KUBERNETES_STAMPS)
    if not (program := folder / "kwok").exists():
        with step(f"Building KWOK {KWOK}", say):
            stages = [(kwok / "kustomize" / "stage" / f"{name}.yaml").read_text() for name in _STAGES]
            (folder / "stages.yaml").write_text("---\n".join(stages))
            go.build(f"{_KWOK.path}/cmd/kwok", program)
    if not (program := folder / "kuberay-operator").exists():
        with step(f"Building KubeRay's operator {KUBERAY}", say):
            _copy_crds(go, folder / "ray-crds")
            go.build(_KUBERAY, program)
    if not any(_plugin(folder, version).exists() for version in (PLUGIN, PLUGIN_SOURCE)) and not _download(
        folder, go, say
    ):
        with step(
            f"Building Pulumi's Kubernetes plugin {PLUGIN_SOURCE} instead (about 6 minutes on 2 cores, once)", say
        ):
            _build_plugin(go, plugin, _plugin(folder, PLUGIN_SOURCE))


def _changed_modules(go: Go) -> tuple[Path, Path]:
    """Copies of KWOK and the plugin beside the go.mod, which is where it looks for them, each with a line changed."""
    kwok, plugin = go.folder / "patched" / "kwok", go.folder / "patched" / "pulumi-kubernetes"
    go.unpack(_KWOK, kwok)
    # The constant came with Kubernetes 1.36; its value is that of k8s.io/apimachinery.
    constant, value = "metav1.InitialEventsListBlueprintAnnotationKey", '"kubernetes.io/initial-events-list-blueprint"'
    _replace(kwok / "pkg" / "utils" / "informer" / "informer.go", constant, value)
    go.unpack(_PLUGIN, plugin)
    # A pointer since the pulumi/pkg/v3 of the CLI, which is newer than the one that this release was made with.
    field = "Provider: pschema.ResourceSpec{"
    _replace(plugin / "pkg" / "gen" / "schema.go", field, field.replace("pschema", "&pschema"))
    return kwok, plugin


def _replace(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    if old not in text:
        raise BuildError(f"{file.name} of the pinned module has no `{old}` to replace by `{new}`.")
    file.write_text(text.replace(old, new))


def _copy_crds(go: Go, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for crd in (go.module_folder(_KUBERAY) / "config" / "crd" / "bases").glob("*.yaml"):
        (folder / crd.name).write_bytes(crd.read_bytes())


def _build_plugin(go: Go, module: Path, program: Path) -> None:
    command = module / "cmd" / "pulumi-resource-kubernetes"
    # As its generate.go does at release. An engine that asked for PLUGIN warns in every run of a plugin that says less.
    schema = {**json.loads((command / "schema.json").read_text()), "version": PLUGIN}
    (command / "schema-embed.json").write_text(json.dumps(schema))
    (command / "terraform-mapping-embed.json").write_bytes((command / "terraform-mapping.json").read_bytes())
    stamps = {f"{_PLUGIN.path}/pkg/version.Version": PLUGIN}
    go.build(f"{_PLUGIN.path}/cmd/pulumi-resource-kubernetes", program, stamps)


def _download(folder: Path, go: Go, say: Say) -> bool:
    """Whether Pulumi's own download of the plugin answered."""
    pulumi = cli.find(say)
    home = go.folder / "pulumi-home"
    command = [str(pulumi.executable), "plugin", "install", "resource", "kubernetes", f"v{PLUGIN}"]
    environment = {**os.environ, **pulumi.environment, "PULUMI_HOME": str(home), "PULUMI_SKIP_UPDATE_CHECK": "true"}
    try:
        with step(f"Downloading Pulumi's Kubernetes plugin {PLUGIN}", say):
            subprocess.run(command, env=environment, capture_output=True, check=True, timeout=_DOWNLOAD_SECONDS)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        say("  not reachable")
        return False
    os.replace(
        home / "plugins" / f"resource-kubernetes-v{PLUGIN}" / "pulumi-resource-kubernetes", _plugin(folder, PLUGIN)
    )
    return True


if __name__ == "__main__":
    try:
        print(find(lambda text: print(text, flush=True)).kubestack.parent)
    except ToolsError as refusal:
        raise SystemExit(f"error: {refusal}") from None
