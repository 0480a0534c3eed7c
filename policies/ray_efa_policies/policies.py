"""From rules to policies: what the SDK calls, what it is told, and what becomes of findings that prove nothing.

The SDK knows one level for a whole policy, so each policy has a companion, ``<name>-unverified``, which advises. It speaks
only where the policy's configuration says ``onUnknown: advisory``; otherwise the policy itself reports, and blocks.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from pulumi_policy import (
    EnforcementLevel,
    Policy,
    PolicyConfigSchema,
    PolicyResource,
    ReportViolation,
    ResourceValidationArgs,
    ResourceValidationPolicy,
    Severity,
    StackValidationArgs,
    StackValidationPolicy,
)

from .options import Options
from .proxies import plain
from .report import Finding, subject
from .scope import of_workload
from .stack import Resource, Stack
from .tokens import is_judged_in_stacks
from .values import UNKNOWN, mapping
from .workloads import Workload, workload_of

UNVERIFIED_SUFFIX = "-unverified"

WorkerRule = Callable[[Workload, Options, str], Iterable[tuple[str, Finding]] | None]
"""Judges a workload, given the Pulumi name too: (part of it, finding) pairs; None if the rule has nothing to say on it."""

StackRule = Callable[[Stack, Options], Iterable[tuple[Resource, str, Finding]]]
"""Judges a stack: (resource to blame, how a message names it, finding)."""


class _NotApplicable(Protocol):
    def not_applicable(self, reason: str | None = None) -> None: ...


@dataclass(frozen=True)
class About:
    """What people and the engine are told of a policy."""

    name: str
    display_name: str
    description: str
    remediation_steps: str
    url: str
    schema: Mapping[str, dict[str, Any]]
    severity: Severity = Severity.HIGH

    def arguments(self) -> dict[str, Any]:
        """Arguments of the policy's constructor."""
        return self._shared(self.name, EnforcementLevel.MANDATORY, self.display_name) | {
            "config_schema": PolicyConfigSchema(dict(self.schema)),
            "severity": self.severity,
        }

    def companion_arguments(self) -> dict[str, Any]:
        """Arguments of its companion's constructor."""
        display_name = f"{self.display_name} (could not be verified)"
        return self._shared(self.name + UNVERIFIED_SUFFIX, EnforcementLevel.ADVISORY, display_name) | {
            "severity": Severity.LOW
        }

    def _shared(self, name: str, level: EnforcementLevel, display_name: str) -> dict[str, Any]:
        return {
            "name": name,
            "display_name": display_name,
            "description": self.description,
            "remediation_steps": self.remediation_steps,
            "url": self.url,
            "enforcement_level": level,
        }


class _Deferred:
    """Messages that a policy leaves to its companion, by what was judged. The SDK runs both in one call, in pack order."""

    def __init__(self) -> None:
        self._messages: dict[str, list[tuple[str, str]]] = {}

    def report(
        self, key: str, options: Options, found: Iterable[tuple[str, str, Finding]], report: ReportViolation
    ) -> None:
        """Reports (URN, subject, finding) triples: proven faults first."""
        self._messages.pop(key, None)
        for urn, label, finding in sorted(found, key=lambda item: item[2].unverified):
            if finding.unverified and not options.unknown_blocks:
                self._messages.setdefault(key, []).append((finding.message(label), urn))
            else:
                report(finding.message(label), urn)

    def advise(self, key: str, report: ReportViolation, args: _NotApplicable) -> None:
        """Reports what was left over for one thing judged."""
        messages = self._messages.pop(key, [])
        if not messages:
            args.not_applicable("nothing was left unverified")
        for message, urn in messages:
            report(message, urn)


class _Seen:
    """Kubernetes objects as the program gave them, by URN.

    A stack policy is shown outputs, and in a first preview an object of a cluster that does not exist yet has none: the
    engine does not ask a provider whose kubeconfig is unknown (pulumi/pulumi pkg/resource/plugin/provider_plugin.go). The
    resource policies of the same run have seen its inputs.
    """

    def __init__(self) -> None:
        self._props: dict[str, Mapping[str, object]] = {}

    def note(self, args: ResourceValidationArgs) -> None:
        """Keeps what a resource policy is shown of an object that a stack policy judges."""
        if is_judged_in_stacks(args.resource_type):
            self._props[args.urn] = mapping(plain(args.props))

    def props(self, item: PolicyResource) -> Mapping[str, object]:
        """The properties of a resource of the stack; all unknown where nobody has seen any."""
        shown = mapping(plain(item.props))
        if shown or not is_judged_in_stacks(item.resource_type):
            return shown
        return self._props.get(item.urn, _UNSEEN_OBJECT)


_UNSEEN_OBJECT: Mapping[str, object] = {"metadata": UNKNOWN, "spec": UNKNOWN}
_seen = _Seen()


def worker_policies(about: About, rule: WorkerRule) -> list[Policy]:
    """A resource policy on Ray workloads, and its companion."""
    deferred = _Deferred()

    def validate(args: ResourceValidationArgs, report: ReportViolation) -> None:
        _seen.note(args)
        if workload_of(args.resource_type, {}) is None:
            args.not_applicable("not a Ray workload")
        workload = workload_of(args.resource_type, mapping(plain(args.props)))
        options = Options.read(plain(args.get_config()))
        found = rule(workload, options, args.name) if workload else None
        if workload is None or found is None:
            scope = of_workload(workload, options, args.name) if workload else None
            args.not_applicable(scope.why_not if scope else None)
            return
        labelled = ((args.urn, subject(workload.kind, args.name, part), finding) for part, finding in found)
        deferred.report(args.urn, options, labelled, report)

    def advise(args: ResourceValidationArgs, report: ReportViolation) -> None:
        deferred.advise(args.urn, report, args)

    return [
        ResourceValidationPolicy(validate=validate, **about.arguments()),
        ResourceValidationPolicy(validate=advise, **about.companion_arguments()),
    ]


def stack_policies(about: About, rule: StackRule) -> list[Policy]:
    """A stack policy, and its companion."""
    deferred = _Deferred()

    def validate(args: StackValidationArgs, report: ReportViolation) -> None:
        options = Options.read(plain(args.get_config()))
        stack = Stack(_resource(item) for item in args.resources)
        found = ((resource.urn, label, finding) for resource, label, finding in rule(stack, options))
        deferred.report("", options, found, report)

    def advise(args: StackValidationArgs, report: ReportViolation) -> None:
        deferred.advise("", report, args)

    return [
        StackValidationPolicy(validate=validate, **about.arguments()),
        StackValidationPolicy(validate=advise, **about.companion_arguments()),
    ]


def _resource(item: PolicyResource) -> Resource:
    sources = {name: tuple(source.urn for source in found) for name, found in item.property_dependencies.items()}
    parent = item.parent.urn if item.parent else ""
    return Resource(item.resource_type, item.name, item.urn, _seen.props(item), sources, parent)
