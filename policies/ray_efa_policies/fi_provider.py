"""Does every worker that moves a KV cache insist on EFA, by ``FI_PROVIDER=efa``, and does nothing take that away again?

The variable makes libfabric fail where it would otherwise fall back to tcp: "no suitable network providers found". Nearer
settings win: what a command assigns over a ``runtime_env``, and that over the container's own environment.
"""

import re
from typing import Final

from . import serve_config
from .engine_groups import judged_groups, may_run_on
from .report import Finding, unknown
from .serve_config import Application
from .values import UNKNOWN, at, mapping, sequence, shown
from .workloads import SERVE_PATH, WorkerGroup, Workload

VARIABLE: Final = "FI_PROVIDER"
_NOT_EFA: Final = "Only 'efa' makes libfabric fail instead of falling back to TCP when it sees no EFA device."
_SET_IT: Final = f'Write {{"name": "{VARIABLE}", "value": "efa"}} in the env of every worker\'s Ray container.'
_TAKE_IT_OUT: Final = f"Leave {VARIABLE} out of the command: the environment of the containers sets it."

# FI_PROVIDER=tcp, never $FI_PROVIDER; "FI_PROVIDER": "tcp" or environ["FI_PROVIDER"] = "tcp"; putenv("FI_PROVIDER", "tcp").
_ASSIGNED: Final = re.compile(
    rf"(?<![\w${{]){VARIABLE}=(?!=)\\?[\"']?(?P<shell>[^\s\"';&|)\\]*)"
    rf"|(?:(?<![\w${{]){VARIABLE}(?:\\?[\"']\]?\s*[=:](?!=)|:\s)|\b(?:putenv|setenv|setdefault)\(\s*\\?[\"']{VARIABLE}\\?[\"']\s*,)"
    rf"\s*\\?[\"']?(?P<code>[^\s\"',;)}}\]\\]*)"
)
_ITSELF: Final = re.compile(rf"\${VARIABLE}|\$\{{{VARIABLE}(?::?-efa)?\}}")
_REMOVED: Final = re.compile(
    rf"\bunset\s+(?:[\w-]+\s+)*{VARIABLE}\b"
    rf"|\benv\b[^;&|]*?\s(?:-u\s*|--unset[=\s]){VARIABLE}\b"
    rf"|\bdel\s[^;]*[\"']{VARIABLE}\b|\bpop\(\s*\\?[\"']{VARIABLE}\b"
)
_EMPTIED: Final = re.compile(r"\benv\s+(?:-\S+\s+)*?(?:-i|--ignore-environment|-)\s")


def check(workload: Workload) -> list[Finding]:
    """Faults of a workload that moves a KV cache through NIXL."""
    findings: list[Finding] = []
    for application in workload.applications:
        findings += [finding.under(f"{SERVE_PATH}: ") for finding in _wrong_in_runtime_env(application)]
    of_job = _job_environment(workload)
    findings += of_job.findings
    for path, text in _commands(workload):
        findings += _in_command(text, path)
    if workload.patch and not workload.groups:
        return findings
    if workload.job("clusterSelector") is not None and not of_job.covers:
        path = ".".join((*workload.job_path, "clusterSelector"))
        findings.append(_indirect(path, "a reference to another cluster"))
    everywhere = of_job.covers or _runtime_env_covers(workload)
    for path in () if everywhere else workload.unknown_paths:
        findings.append(unknown(path, f"Whether every worker sets {VARIABLE}=efa"))
    for group in judged_groups(workload):
        findings += _of_group(group, everywhere or _covered(workload, group))
    return findings


def _wrong_in_runtime_env(application: Application) -> list[Finding]:
    """Every FI_PROVIDER in an env_vars of the application: it overrides the container's, so a wrong one always counts."""
    findings: list[Finding] = []
    for path, node in serve_config.walk(application.value, application.path):
        if path.endswith(".env_vars") and VARIABLE in mapping(node) and mapping(node)[VARIABLE] != "efa":
            findings.append(_overridden(f"{path}.{VARIABLE}", mapping(node)[VARIABLE]))
    return findings


def _overridden(path: str, value: object) -> Finding:
    return Finding(path, shown(value), _NOT_EFA, 'Write "efa", or leave it out here.')


class _JobEnvironment:
    """What a job's ``runtimeEnvYAML`` does to the variable: it goes to the driver and to every worker the job uses."""

    def __init__(self, text: object, path: str) -> None:
        """Takes the text as given and where it stands."""
        self.covers = False
        self.findings: list[Finding] = []
        if text is UNKNOWN:
            self.findings.append(unknown(path, f"Whether it leaves {VARIABLE} at efa"))
        elif text is not None:
            parsed = serve_config.parse_mapping(text)
            variables = mapping(at(parsed.tree, "env_vars"))
            self.covers = variables.get(VARIABLE) == "efa" and not parsed.reason
            if VARIABLE in variables and variables[VARIABLE] != "efa":
                self.findings.append(_overridden(f"{path}: env_vars.{VARIABLE}", variables[VARIABLE]))
            elif parsed.reason and parsed.reason != "empty":
                why = f"Whether it leaves {VARIABLE} at efa cannot be read from it."
                self.findings.append(Finding(path, parsed.reason, why, "Write one YAML mapping.", unverified=True))


def _job_environment(workload: Workload) -> _JobEnvironment:
    return _JobEnvironment(workload.job("runtimeEnvYAML"), ".".join((*workload.job_path, "runtimeEnvYAML")))


def _commands(workload: Workload) -> list[tuple[str, str]]:
    """The commands that start engines, each as one text: a job's entry point, and what the Ray containers run."""
    found = [(".".join((*workload.job_path, "entrypoint")), workload.job("entrypoint"))]
    submitter = at(workload.job("submitterPodTemplate"), "spec", "containers", 0)
    submitter_path = ".".join((*workload.job_path, "submitterPodTemplate.spec.containers[0]"))
    containers = [(group.container, group.container_path) for group in judged_groups(workload)]
    for container, path in (*containers, (submitter, submitter_path)):
        for name in ("command", "args"):
            words = [word for word in sequence(at(container, name)) if isinstance(word, str)]
            found.append((f"{path}.{name}", " ".join(words)))
    return [(path, text) for path, text in found if isinstance(text, str)]


def _in_command(text: str, path: str) -> list[Finding]:
    values = [found["shell"] or found["code"] or "" for found in _ASSIGNED.finditer(text)]
    wrong = [value for value in values if value != "efa" and not _ITSELF.fullmatch(value)]
    hidden = [value for value in wrong if "$" in value or "`" in value]
    proven = [value for value in wrong if value not in hidden]
    if proven:
        return [Finding(path, f"a command that sets {VARIABLE} to {shown(proven[0])}", _NOT_EFA, _TAKE_IT_OUT)]
    if _REMOVED.search(text) or (_EMPTIED.search(text) and "efa" not in values):
        return [Finding(path, f"a command that takes {VARIABLE} out of the environment", _NOT_EFA, _TAKE_IT_OUT)]
    return [_indirect(path, f"a command that sets {VARIABLE} to what cannot be seen")] if hidden else []


def _runtime_env_covers(workload: Workload) -> bool:
    """Whether the applications themselves give FI_PROVIDER=efa to every replica that moves a KV cache."""
    if workload.llm_configs:
        return all(serve_config.environment(config, app).get(VARIABLE) == "efa" for config, app in workload.llm_configs)
    environments = [at(app.value, "runtime_env", "env_vars", VARIABLE) for app in workload.applications]
    return bool(environments) and all(value == "efa" for value in environments)


def _covered(workload: Workload, group: WorkerGroup) -> bool:
    """Whether all engines that Ray may place on this group bring the variable along by their own runtime_env."""
    here = [(config, app) for config, app in workload.llm_configs if may_run_on(config, group, workload.groups)]
    return bool(here) and all(serve_config.environment(config, app).get(VARIABLE) == "efa" for config, app in here)


def _of_group(group: WorkerGroup, covered: bool) -> list[Finding]:
    container = group.container
    path = f"{group.container_path}.env"
    env = at(container, "env")
    if env is UNKNOWN or any(entry is UNKNOWN for entry in sequence(env)):
        return [] if covered else [unknown(path, f"Whether the worker sets {VARIABLE}=efa")]
    # Of two entries Kubernetes takes the last, so that one of unknown name may override all before it.
    named = [entry for entry in sequence(env) if at(entry, "name") in (VARIABLE, UNKNOWN)]
    if named and at(named[-1], "name") is UNKNOWN:
        return [] if covered else [unknown(path, f"Whether the worker sets {VARIABLE}=efa")]
    if named:
        return _entry(named[-1], f"{path}[{VARIABLE}]", covered)
    if covered:
        return []
    if at(container, "envFrom"):
        return [_indirect(f"{group.container_path}.envFrom", "the only place where it could come from")]
    return [
        Finding(
            f"{path}[{VARIABLE}]",
            "missing",
            "Without it libfabric falls back to TCP when it sees no EFA device, with no error.",
            _SET_IT,
        )
    ]


def _entry(entry: object, path: str, covered: bool) -> list[Finding]:
    value = at(entry, "value")
    if value == "efa" or (covered and value is None):
        return []
    if value is UNKNOWN:
        return [unknown(f"{path}.value", f"Whether {VARIABLE} is efa")]
    if value is None and at(entry, "valueFrom") is not None:
        return [_indirect(f"{path}.valueFrom", "a reference to another object")]
    return [Finding(f"{path}.value", shown(value), _NOT_EFA, 'Write "efa".')]


def _indirect(path: str, found: str) -> Finding:
    return Finding(
        path,
        found,
        f"What {VARIABLE} will be cannot be verified from here, and without efa libfabric may fall back to TCP.",
        _SET_IT,
        unverified=True,
    )
