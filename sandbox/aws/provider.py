"""The stand-in itself: Pulumi's calls, answered from the SDK's schema, ``services/``, ``data_sources`` and moto."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sandbox.aws import api_shapes, changes, data_sources, defaults, names, outputs, schema
from sandbox.aws.cloud import Cloud
from sandbox.aws.control_planes import ControlPlanes
from sandbox.aws.inputs import checked, without_defaults
from sandbox.aws.kinds import ResourceKind, RuleContext
from sandbox.aws.life.instances import TEMPLATE
from sandbox.aws.lifecycle import Lifecycle
from sandbox.aws.services import KINDS
from sandbox.faults import FaultPlan
from sandbox.inventory import Item
from sandbox.nodes import Node
from sandbox.standin import UNKNOWN, Checked, CheckFailure, Difference, ResourceRef, StandIn, StandInError

_UNLISTED = ResourceKind(source="")


class Aws(StandIn):
    """``aws`` for the sandbox: one account, kept in a folder, or in memory without one.

    One process stands in for every provider of the package: of two explicit providers in different regions the one
    configured last gives the region of resources that name none.
    """

    package = "aws"

    def __init__(
        self,
        folder: Path | None = None,
        faults: FaultPlan | None = None,
        *,
        cloud: Cloud | None = None,
        control_planes: ControlPlanes | None = None,
    ) -> None:
        self.cloud = self._cloud = cloud or Cloud(folder, control_planes)
        self._lifecycle = Lifecycle(self._cloud, faults or FaultPlan())
        self._region = ""
        self._default_tags: dict[str, Any] = {}
        self._planned: dict[str, Mapping[str, Any]] = {}

    def start_run(self) -> None:
        """Forgets which launch templates the last run of the engine has planned."""
        self._planned = {}

    def warm_up(self) -> None:
        """Loads moto's services and the models of all listed types, some seconds of work that the first calls would wait for."""
        self._cloud.warm_up()
        for token, kind in KINDS.items():
            schema.resource(token)
            if kind.api:
                api_shapes.load(kind.api)

    def check_config(self, inputs: Mapping[str, Any]) -> Sequence[CheckFailure]:
        """Refuses a missing region, and one that AWS does not have."""
        region = _region_of(inputs)
        if region is UNKNOWN:
            return ()
        if region == "":
            return [CheckFailure("region", "is not set: run `pulumi config set aws:region us-east-1`")]
        known = self._cloud.regions()
        if region not in known:
            return [CheckFailure("region", f"is {region!r}, which is no AWS region: {', '.join(sorted(known))}")]
        return ()

    def configure(self, config: Mapping[str, Any]) -> None:
        """Takes region and default tags."""
        region = _region_of(config)
        self._region = region if isinstance(region, str) else ""
        tags = _decoded(config.get("defaultTags")) or {}
        self._default_tags = dict(tags.get("tags") or {})

    def check(
        self, ref: ResourceRef, inputs: dict[str, Any], old_inputs: dict[str, Any] | None, random_seed: bytes
    ) -> Checked:
        """Judges inputs as the provider and the API would; fills in names, region, tags and defaults."""
        described = self._schema(ref.token)
        kind = KINDS.get(ref.token, _UNLISTED)
        given = {key: value for key, value in inputs.items() if key not in ("tagsAll", "__defaults")}
        kept, failures = checked(described.inputs, given, ref.token.rpartition(":")[2])
        kept["__defaults"] = []
        rule = names.auto_name_of(described)
        if rule is not None:
            failures += names.fill_in(rule, ref.name, kept, old_inputs, random_seed)
        defaults.add_region(described, kept, self._region)
        defaults.add_fixed(kind, kept)
        defaults.add_tags_all(described, kept, self._default_tags)
        if ref.token == TEMPLATE:
            self._planned[ref.urn] = {"region": self._region, **kept}
        failures += self._faults(kind, kept)
        return Checked(kept, failures)

    def diff(
        self,
        ref: ResourceRef,
        id: str,
        old_inputs: dict[str, Any],
        old_outputs: dict[str, Any],
        new_inputs: dict[str, Any],
    ) -> Difference:
        """Compares inputs; what replaces comes from the type's row in ``services/``.

        Raises:
            StandInError: The type has no row and something changed.
        """
        kind = KINDS.get(ref.token)
        found = list(changes.changed_paths(old_inputs, new_inputs, kind.sets if kind else frozenset()))
        if not found:
            return Difference()
        if kind is None:
            raise StandInError(
                f"the sandbox does not know what a change of {', '.join(found)} does to {ref.token}: "
                "list the type's ForceNew fields in sandbox/aws/services"
            )
        rule = names.auto_name_of(self._schema(ref.token))
        first_delete = kind.delete_before_replace or names.is_fixed(rule, old_inputs, new_inputs)
        return Difference(found, changes.replacing(found, kind, old_inputs, new_inputs), first_delete)

    def create(self, ref: ResourceRef, inputs: dict[str, Any], preview: bool) -> tuple[str, dict[str, Any]]:
        """Makes the resource; in a preview: no id, and UNKNOWN for what only AWS fills in."""
        if not preview:
            return self._lifecycle.create(ref, inputs, self._region)
        described = self._schema(ref.token)
        planned = outputs.of_new(described, KINDS.get(ref.token, _UNLISTED), inputs)
        tags = defaults.planned_tags_all(described, inputs, self._default_tags)
        return "", planned if tags is None else {**planned, "tagsAll": tags}

    def read(
        self, ref: ResourceRef, id: str, inputs: dict[str, Any], outputs: dict[str, Any]
    ) -> tuple[str, dict[str, Any], dict[str, Any]] | None:
        """Reads what the account has of it now. None when there is no such thing."""
        kind = KINDS.get(ref.token, _UNLISTED)
        return self._lifecycle.read(ref, id, inputs, outputs, kind, self._region)

    def update(
        self,
        ref: ResourceRef,
        id: str,
        old_inputs: dict[str, Any],
        old_outputs: dict[str, Any],
        new_inputs: dict[str, Any],
        preview: bool,
    ) -> dict[str, Any]:
        """Changes the resource; in a preview: new values over what AWS filled in before."""
        if not preview:
            return self._lifecycle.update(ref, id, old_outputs, new_inputs, self._region)
        kind = KINDS.get(ref.token, _UNLISTED)
        return outputs.of_update(self._schema(ref.token), kind, old_outputs, new_inputs)

    def delete(self, ref: ResourceRef, id: str, old_inputs: dict[str, Any], old_outputs: dict[str, Any]) -> None:
        """Deletes the resource; refused while something uses it."""
        self._lifecycle.delete(ref, id, old_inputs, self._region)

    def inventory(self) -> list[Item]:
        """Everything that exists in the account, but for what it had before any stack."""
        return self._lifecycle.inventory()

    def remove(self, item: Item) -> None:
        """Deletes something from the inventory.

        Raises:
            StandInError: AWS refuses it: something else uses it.
        """
        self._lifecycle.remove(item)

    def cluster_endpoints(self) -> Mapping[str, str]:
        """API server endpoint -> name of each EKS cluster that exists."""
        return self._lifecycle.cluster_endpoints()

    def nodes(self, cluster: str) -> Sequence[Node]:
        """The nodes of an EKS cluster, by its name."""
        return self._lifecycle.nodes(cluster)

    def invoke(self, token: str, args: dict[str, Any]) -> dict[str, Any]:
        """Answers a data source, its arguments judged like a resource's inputs."""
        described = schema.function(token)
        if described is None:
            raise StandInError(f"{token} is no function of the aws provider")
        kept, failures = checked(described.arguments, args, token.rpartition(":")[2])
        if failures:
            raise StandInError("; ".join(f"{token}: {one.property} {one.reason}" for one in failures))
        region = kept.get("region") or self._region
        return data_sources.answer(token, without_defaults(kept), self._cloud, region)

    def _schema(self, token: str) -> schema.ResourceSchema:
        described = schema.resource(token)
        if described is None:
            raise StandInError(f"{token} is no resource type of the aws provider")
        return described

    def _faults(self, kind: ResourceKind, inputs: Mapping[str, Any]) -> list[CheckFailure]:
        region = inputs.get("region", self._region)
        if not isinstance(region, str):
            return []
        context = RuleContext(inputs, region, self._cloud, dict(self._planned))
        found = list(api_shapes.faults(kind.api, inputs)) if kind.api else []
        for rule in kind.rules:
            found += rule(context)
        return found


def _region_of(config: Mapping[str, Any]) -> Any:
    # The environment is not asked: the engine's children do not inherit the user's AWS settings here.
    given = config.get("region")
    return "" if given is None else given


def _decoded(value: Any) -> Any:
    # Nested provider configuration crosses the wire as JSON text.
    return json.loads(value) if isinstance(value, str) else value
