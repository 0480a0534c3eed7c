"""Do both roles of a prefill/decode workload take NIXL's LIBFABRIC backend, and does every worker insist on EFA?

``FI_PROVIDER=efa`` makes libfabric fail where it would otherwise fall back to tcp: "no suitable network providers found".
"""

from typing import Final

from . import kv_transfer, serve_config
from .report import Finding, unknown
from .scope import judged_groups, names_kv_transfer, transfer_texts
from .serve_config import Application, LlmConfig
from .values import UNKNOWN, at, mapping, sequence, shown
from .workloads import WorkerGroup, Workload

VARIABLE: Final = "FI_PROVIDER"
_SERVE_PATH: Final = "spec.serveConfigV2"
_NOT_EFA: Final = "Only 'efa' makes libfabric fail instead of falling back to TCP when it sees no EFA device."
_SET_IT: Final = f'Write {{"name": "{VARIABLE}", "value": "efa"}} in the env of every worker\'s Ray container.'


def check(workload: Workload) -> list[Finding]:
    """Faults of a workload that is in scope."""
    if workload.serve_text is UNKNOWN:
        return [unknown(_SERVE_PATH, "Which backend NIXL takes on prefill and decode")]
    findings: list[Finding] = []
    applications: list[Application] = []
    if workload.serves and not (workload.patch and workload.serve_text is None):
        if workload.serve.reason:
            return [_unreadable(workload.serve.reason)]
        applications = serve_config.applications(workload.serve.tree)
        for application in applications:
            findings += [finding.under(f"{_SERVE_PATH}: ") for finding in _application(application)]
    findings += _texts(workload)
    if names_kv_transfer(workload):
        findings += _provider(workload, applications)
    return findings


def _unreadable(reason: str) -> Finding:
    return Finding(
        _SERVE_PATH,
        reason,
        "Which backend NIXL takes on prefill and decode cannot be read from it.",
        "Write the Serve configuration as one YAML mapping with a list 'applications'.",
    )


def _application(application: Application) -> list[Finding]:
    findings: list[Finding] = []
    if not application.is_ray_llm and not application.is_prefill_decode:
        findings.append(
            Finding(
                f"{application.path}.import_path",
                shown(application.import_path),
                "The application's own code may set up a KV transfer, which cannot be verified here.",
                "Use ray.serve.llm:build_pd_openai_app with its arguments in this file, or check by hand that the code "
                'gives NixlConnector the backends ["LIBFABRIC"].',
                unverified=True,
            )
        )
    configs = serve_config.llm_configs(application)
    args = application.value.get("args")
    if isinstance(args, str):
        findings.append(_elsewhere(f"{application.path}.args"))
    elif application.is_prefill_decode or configs:
        for config in configs:
            findings += _llm_config(config)
    seen = {f"{config.path}.engine_kwargs.kv_transfer_config" for config in configs}
    for path, node in serve_config.walk(application.value, application.path):
        if path.endswith(".kv_transfer_config") and path not in seen and not isinstance(node, bool | None):
            findings += kv_transfer.judge(node, path)
    return findings


def _llm_config(config: LlmConfig) -> list[Finding]:
    if isinstance(config.value, str):
        return [_elsewhere(config.path)]
    if not config.required and not mapping(config.value):
        return []
    path = f"{config.path}.engine_kwargs.kv_transfer_config"
    engine = at(config.value, "engine_kwargs")
    transfer = at(engine, "kv_transfer_config")
    if transfer is None and not config.required:
        return []
    if transfer is None:
        return [
            Finding(
                path,
                "missing",
                f"The {config.label} role cannot move its KV cache, and Ray refuses the application after the GPUs run.",
                'Write {"kv_connector": "NixlConnector", "kv_connector_extra_config": {"backends": ["LIBFABRIC"]}}.',
            )
        ]
    stray = ""
    if "backends" in mapping(engine):
        stray = f"{config.path}.engine_kwargs.backends"
    elif "kv_connector_extra_config" in mapping(engine):
        stray = f"{config.path}.engine_kwargs.kv_connector_extra_config"
    elif "backends" in mapping(config.value):
        stray = f"{config.path}.backends"
    return kv_transfer.judge(transfer, path, stray)


def _elsewhere(path: str) -> Finding:
    return Finding(
        path,
        "the path of a file",
        "The file is not part of the deployment, so the backend of NIXL cannot be verified.",
        "Write the LLM configuration out in serveConfigV2, as a mapping.",
        unverified=True,
    )


def _texts(workload: Workload) -> list[Finding]:
    """Commands, entry points and environments that carry a kv_transfer_config as JSON."""
    findings: list[Finding] = []
    for path, text in transfer_texts(workload):
        configs = kv_transfer.in_text(text)
        if not configs:
            findings.append(
                Finding(
                    path,
                    "a text that names NixlConnector without a readable JSON kv_transfer_config",
                    "Which backend NIXL takes cannot be verified from it.",
                    'Write it as one JSON object: {"kv_connector": "NixlConnector", '
                    '"kv_connector_extra_config": {"backends": ["LIBFABRIC"]}}.',
                    unverified=True,
                )
            )
        for config in configs:
            inner = [node for _, node in serve_config.walk(config) if "kv_connector" in mapping(node)]
            findings += kv_transfer.judge(inner[0], path)
    return findings


def _provider(workload: Workload, applications: list[Application]) -> list[Finding]:
    findings: list[Finding] = []
    for application in applications:
        findings += [finding.under(f"{_SERVE_PATH}: ") for finding in _wrong_in_runtime_env(application)]
    everywhere = _runtime_env_covers(workload, applications)
    if workload.patch and not workload.groups:
        return findings
    for path in () if everywhere else workload.unknown_paths:
        findings.append(unknown(path, f"Whether every worker sets {VARIABLE}=efa"))
    for group in judged_groups(workload):
        findings += _provider_of(group, everywhere)
    return findings


def _wrong_in_runtime_env(application: Application) -> list[Finding]:
    """Every FI_PROVIDER in an env_vars of the application: it overrides the container's, so a wrong one always counts."""
    findings: list[Finding] = []
    for path, node in serve_config.walk(application.value, application.path):
        if path.endswith(".env_vars") and VARIABLE in mapping(node) and mapping(node)[VARIABLE] != "efa":
            value = mapping(node)[VARIABLE]
            findings.append(Finding(f"{path}.{VARIABLE}", shown(value), _NOT_EFA, 'Write "efa", or leave it out here.'))
    return findings


def _runtime_env_covers(workload: Workload, applications: list[Application]) -> bool:
    """Whether the applications themselves give FI_PROVIDER=efa to every replica that moves a KV cache."""
    configs = [
        (config, application) for application in applications for config in serve_config.llm_configs(application)
    ]
    if configs:
        return all(serve_config.environment(config, app).get(VARIABLE) == "efa" for config, app in configs)
    if applications:
        return all(at(app.value, "runtime_env", "env_vars", VARIABLE) == "efa" for app in applications)
    for path in (("spec", "runtimeEnvYAML"), ("spec", "jobTemplate", "runtimeEnvYAML")):
        parsed = serve_config.parse(at(workload.body, *path)).tree
        if at(parsed, "env_vars", VARIABLE) == "efa":
            return True
    return False


def _provider_of(group: WorkerGroup, covered: bool) -> list[Finding]:
    container = group.container
    path = f"{group.container_path}.env"
    env = at(container, "env")
    if env is UNKNOWN or any(entry is UNKNOWN for entry in sequence(env)):
        return [] if covered else [unknown(path, f"Whether the worker sets {VARIABLE}=efa")]
    entries = [entry for entry in sequence(env) if at(entry, "name") == VARIABLE]
    if entries:
        return _entry(entries[-1], f"{path}[{VARIABLE}]", covered)  # of two entries Kubernetes takes the last
    if covered:
        return []
    if at(container, "envFrom"):
        return [_indirect(f"{group.container_path}.envFrom", "the only place where it could come from")]
    if any(at(entry, "name") is UNKNOWN for entry in sequence(env)):
        return [unknown(path, f"Whether the worker sets {VARIABLE}=efa")]
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
