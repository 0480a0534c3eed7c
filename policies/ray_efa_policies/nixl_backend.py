"""Do both roles of a prefill/decode workload take NIXL's LIBFABRIC backend, and does every worker insist on EFA?"""

from typing import Final

from . import fi_provider, kv_transfer, serve_config
from .engine_groups import judged_groups
from .report import Finding, unknown
from .scope import names_kv_transfer, transfer_texts
from .serve_config import Application, LlmConfig
from .values import UNKNOWN, at, mapping, sequence, shown
from .workloads import SERVE_PATH, Workload

_QUESTION: Final = "Which backend NIXL takes on prefill and decode"


def check(workload: Workload) -> list[Finding]:
    """Faults of a workload that is in scope."""
    if workload.serve_text is UNKNOWN:
        return [unknown(SERVE_PATH, _QUESTION)]
    findings: list[Finding] = []
    if workload.serves and not (workload.patch and workload.serve_text is None):
        if workload.serve.reason:
            return [_unreadable(workload.serve.reason)]
        for application in workload.applications:
            findings += [finding.under(f"{SERVE_PATH}: ") for finding in _application(application)]
    findings += _texts(workload)
    findings += [
        unknown(path, "Whether NIXL moves a KV cache, and by which backend,") for path in _hidden_commands(workload)
    ]
    if names_kv_transfer(workload):
        findings += fi_provider.check(workload)
    return findings


def _hidden_commands(workload: Workload) -> list[str]:
    """Commands of engines that cannot be seen and might set up a KV transfer of their own."""
    paths = [".".join((*workload.job_path, "entrypoint"))] if workload.job("entrypoint") is UNKNOWN else []
    for group in judged_groups(workload):
        for name in ("command", "args"):
            value = at(group.container, name)
            if (
                group.container is not UNKNOWN
                and group.pod is not UNKNOWN
                and (value is UNKNOWN or UNKNOWN in sequence(value))
            ):
                paths.append(f"{group.container_path}.{name}")
    return paths


def _unreadable(reason: str) -> Finding:
    return Finding(
        SERVE_PATH,
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
