"""How the programs of the real Kubernetes are got, with a stand-in for Go and for Pulumi's download."""

import fcntl
import json
import re
import threading
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from sandbox import cli
from sandbox.cluster import go_build, tools

_GO_MOD = (Path(tools.__file__).parent / "go" / "go.mod").read_text()
_PROGRAMS = ["kubestack", "kuberay-operator", "kwok", f"pulumi-resource-kubernetes-{tools.PLUGIN_SOURCE}"]
# What the stand-in's modules hold: what is copied from them, and the two lines that are changed.
_KWOK_FILES = {
    "pkg/utils/informer/informer.go": "a := metav1.InitialEventsListBlueprintAnnotationKey\n",
    **{f"kustomize/stage/{name}.yaml": f"stage: {name}\n" for name in tools._STAGES},
}
_PLUGIN_FILES = {
    "pkg/gen/schema.go": "Provider: pschema.ResourceSpec{\n",
    "cmd/pulumi-resource-kubernetes/schema.json": '{"name": "kubernetes"}',
    "cmd/pulumi-resource-kubernetes/terraform-mapping.json": "{}",
}


class Machine:
    """A machine with an empty cache, whose PATH holds what a test puts there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cache = folder / "cache" / "ray-llm-eks"
        self.calls = folder / "calls"
        self.path = folder / "path"
        self.path.mkdir()
        self.said: list[str] = []

    def program(self, name: str, script: str) -> None:
        """Puts an executable on PATH."""
        file = self.path / name
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)

    def go(self, version: str = "go1.26.6", build: str = 'echo built > "$program"') -> None:
        """Puts a Go on PATH; ``build`` is the shell line that makes $program of $package in the work folder."""
        script = f"""echo "$@" >> {self.calls}
for argument; do case "$argument" in -o=*) program="${{argument#-o=}}" ;; esac; package="$argument"; done
case "$1" in
env) if [ "$GOTOOLCHAIN" = local ]; then echo {version}; else echo "${{FETCHED_GO:-{version}}}"; fi ;;
mod) case "$package" in
    sigs.k8s.io/kwok@*) cat {self.module(tools._KWOK, _KWOK_FILES)} ;;
    */provider/v4@*) cat {self.module(tools._PLUGIN, _PLUGIN_FILES)} ;;
    */ray-operator) echo '{{"Dir": "{self.folder / "kuberay"}"}}' ;;
    esac ;;
build) {build} ;;
esac"""
        self.program("go", script)
        crds = self.folder / "kuberay" / "config" / "crd" / "bases"
        crds.mkdir(parents=True, exist_ok=True)
        (crds / "ray.io_rayclusters.yaml").write_text("kind: CustomResourceDefinition\n")

    def module(self, module: go_build.Module, files: dict[str, str], content_hash: str | None = None) -> Path:
        """A file with what `go mod download -json` answers for a module."""
        name = re.sub(r"\W", "_", module.path)
        archive = self.folder / f"{name}.zip"
        with zipfile.ZipFile(archive, "w") as content:
            for file, text in files.items():
                content.writestr(f"{module.path}@{module.version}/{file}", text)
        answer = self.folder / f"{name}.json"
        answer.write_text(json.dumps({"Sum": content_hash or module.hash, "Zip": str(archive)}))
        return answer

    def find(self) -> tools.Tools:
        return tools.find(self.said.append)

    def refusal(self) -> str:
        with pytest.raises(tools.ToolsError) as refusal:
            self.find()
        assert "\n" not in str(refusal.value)
        return str(refusal.value)

    def built(self) -> list[str]:
        """The packages that Go was asked to build, in order."""
        lines = self.calls.read_text().splitlines() if self.calls.exists() else []
        return [line.rsplit(" ", 1)[1] for line in lines if line.startswith("build ")]

    def kept(self) -> list[str]:
        """The programs in the cache, whole or not, and whatever a build has left there."""
        beside = {"lock", "build.log", "stages.yaml", "ray-crds"}
        return sorted(file.name for file in self.cache.glob("kubernetes-*/*") if file.name not in beside)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine with a Pulumi CLI whose download of plugins does not answer, and no Go."""
    machine = Machine(tmp_path)
    monkeypatch.setenv("PATH", f"{machine.path}:/usr/bin:/bin")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    machine.program("pulumi", 'if [ "$1" = version ]; then echo v3.274.1; else exit 1; fi')
    machine.program("pulumi-language-python", "exit 1")
    # Where the tests themselves run, Go may be in /usr/bin.
    which = go_build.shutil.which
    monkeypatch.setattr(
        go_build.shutil, "which", lambda name: which(name, path=str(machine.path)) if name == "go" else which(name)
    )
    return machine


def test_everything_is_built_once_and_then_taken_from_the_cache(machine: Machine) -> None:
    machine.go()
    found = machine.find()
    assert machine.built() == [
        "./kubestack",
        "sigs.k8s.io/kwok/cmd/kwok",
        "github.com/ray-project/kuberay/ray-operator",
        "github.com/pulumi/pulumi-kubernetes/provider/v4/cmd/pulumi-resource-kubernetes",
    ]
    assert [file.read_text() for file in (found.kubestack, found.kwok, found.operator, found.provider)] == [
        "built\n"
    ] * 4
    assert [crd.name for crd in found.ray_crds.iterdir()] == ["ray.io_rayclusters.yaml"]
    assert found.stages.read_text().split("---\n") == [f"stage: {name}\n" for name in tools._STAGES]
    assert [line.split(" (")[0] for line in machine.said] == [
        "Building etcd, kube-apiserver, kube-controller-manager and kube-scheduler 1.35.4",
        "  done in 0 s",
        "Building KWOK 0.7.0 ...",
        "  done in 0 s",
        "Building KubeRay's operator 1.6.0 ...",
        "  done in 0 s",
        f"Downloading Pulumi's Kubernetes plugin {tools.PLUGIN} ...",
        "  not reachable",
        f"Building Pulumi's Kubernetes plugin {tools.PLUGIN_SOURCE} instead",
        "  done in 0 s",
    ]
    (machine.path / "go").unlink()
    assert tools.find(pytest.fail) == found


def test_the_plugin_is_downloaded_where_that_answers(machine: Machine) -> None:
    machine.go()
    folder = f"$PULUMI_HOME/plugins/resource-kubernetes-v{tools.PLUGIN}"
    install = f"mkdir -p {folder} && echo $* > {folder}/pulumi-resource-kubernetes"
    machine.program("pulumi", f'if [ "$1" = version ]; then echo v3.274.1; else {install}; fi')
    found = machine.find()
    assert found.provider.read_text() == f"plugin install resource kubernetes v{tools.PLUGIN}\n"
    assert found.provider_version == tools.PLUGIN
    assert not any("provider/v4" in package for package in machine.built())


def test_a_plugin_that_is_built_says_the_sdks_version_and_is_named_by_its_own(machine: Machine) -> None:
    embedded = "patched/pulumi-kubernetes/cmd/pulumi-resource-kubernetes/schema-embed.json"
    machine.go(build=f'case "$package" in */provider/v4/*) cp {embedded} "$program" ;; *) touch "$program" ;; esac')
    found = machine.find()
    assert json.loads(found.provider.read_text()) == {"name": "kubernetes", "version": tools.PLUGIN}
    assert found.provider_version == tools.PLUGIN_SOURCE
    assert f"/provider/v4/pkg/version.Version={tools.PLUGIN}" in machine.calls.read_text()


def test_both_modules_are_changed_by_their_line_before_anything_is_built(machine: Machine) -> None:
    machine.go(build='cat patched/kwok/pkg/utils/informer/*.go patched/pulumi-kubernetes/pkg/gen/*.go > "$program"')
    assert machine.find().kubestack.read_text() == (
        'a := "kubernetes.io/initial-events-list-blueprint"\nProvider: &pschema.ResourceSpec{\n'
    )


def test_without_go_the_error_says_what_to_install(machine: Machine) -> None:
    assert machine.refusal() == (
        "no real Kubernetes for the sandbox: there is no Go on PATH."
        " Install Go 1.26.6 or newer (https://go.dev/doc/install), then run this again."
    )
    assert machine.kept() == []


def test_a_go_that_is_too_old_and_fetches_no_newer_one_is_named(machine: Machine) -> None:
    machine.go(version="go1.22.1")
    assert machine.refusal() == (
        "no real Kubernetes for the sandbox: Go 1.22.1 on PATH is too old, and it could not fetch 1.26.6 by itself."
        " Install Go 1.26.6 or newer (https://go.dev/doc/install), then run this again."
    )
    assert machine.built() == []


def test_an_old_go_that_fetches_the_newer_one_builds(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FETCHED_GO", "go1.26.8")
    machine.go(version="go1.24.0")
    machine.find()
    assert machine.said[0] == "Go 1.24.0 is older than 1.26.6; asking it to fetch that ..."


def test_a_build_that_fails_names_the_fault_and_leaves_nothing_half(machine: Machine) -> None:
    complaint = "echo 'go: downloading k8s.io/api v0.35.4' >&2; echo '# k8s.io/api' >&2; echo 'write a.o: no space left on device' >&2"
    machine.go(build=f'echo half > "$program"; {complaint}; exit 1')
    message = machine.refusal()
    assert re.fullmatch(
        r"no real Kubernetes for the sandbox: `go build` failed: write a\.o: no space left on device"
        r" \(all of its output: (\S+)\)\.",
        message,
    )
    assert machine.kept() == []
    log = next(machine.cache.glob("kubernetes-*/build.log"))
    assert str(log) in message
    assert log.read_text().splitlines()[0] == "go: downloading k8s.io/api v0.35.4"


def test_a_second_try_builds_only_what_the_first_has_not(machine: Machine) -> None:
    machine.go(build='case "$package" in *kwok) exit 1 ;; *) echo built > "$program" ;; esac')
    machine.refusal()
    assert machine.kept() == ["kubestack"]
    machine.calls.unlink()
    machine.go()
    machine.find()
    assert "./kubestack" not in machine.built()
    assert machine.kept() == sorted(_PROGRAMS)


def test_a_module_with_another_hash_is_not_built(machine: Machine) -> None:
    machine.go()
    machine.module(tools._KWOK, _KWOK_FILES, content_hash="h1:other")
    assert f"sigs.k8s.io/kwok@v{tools.KWOK} was fetched with the hash h1:other, but h1:" in machine.refusal()
    assert machine.built() == []


def test_a_module_that_cannot_be_fetched_is_named(machine: Machine) -> None:
    machine.go()
    answer = machine.folder / "sigs_k8s_io_kwok.json"
    answer.write_text(json.dumps({"Error": "sigs.k8s.io/kwok@v0.7.0: no route to host"}))
    script = (machine.path / "go").read_text()
    (machine.path / "go").write_text(script.replace(f"cat {answer}", f"cat {answer}; exit 1"))
    assert "`go mod download` failed: sigs.k8s.io/kwok@v0.7.0: no route to host (all of" in machine.refusal()


def test_a_pinned_module_without_the_line_to_change_is_refused(machine: Machine) -> None:
    machine.go()
    machine.module(tools._PLUGIN, {"pkg/gen/schema.go": "nothing of the kind\n"})
    assert "schema.go of the pinned module has no `Provider: pschema.ResourceSpec{` to replace" in machine.refusal()


def test_who_comes_while_another_builds_waits_and_builds_nothing(machine: Machine) -> None:
    machine.go()
    folder = tools._folder()
    folder.mkdir(parents=True)
    found: list[tools.Tools] = []
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        waiting = threading.Thread(target=lambda: found.append(machine.find()))
        waiting.start()
        _until(lambda: machine.said == ["Another process is building the same; waiting for it ..."])
        for name in _PROGRAMS:
            (folder / name).touch()
    waiting.join(timeout=20)
    assert [tool.kubestack for tool in found] == [folder / "kubestack"]
    assert machine.built() == []


def test_the_versions_are_those_of_the_shared_go_mod() -> None:
    pins = {
        "k8s.io/kubernetes": f"v{tools.KUBERNETES}",
        "github.com/ray-project/kuberay/ray-operator": f"v{tools.KUBERAY}",
        "sigs.k8s.io/kwok": tools._KWOK.version,
        "github.com/pulumi/pulumi-kubernetes/provider/v4": tools._PLUGIN.version,
        "github.com/pulumi/pulumi/pkg/v3": f"v{cli.VERSION}",
    }
    assert {module: re.findall(rf"(?m)^\t{module} (v\S+)", _GO_MOD) for module in pins} == {
        module: [version] for module, version in pins.items()
    }
    assert re.findall(r"(?m)^go (\S+)$", _GO_MOD) == [str(go_build.OLDEST_GO)]


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)
