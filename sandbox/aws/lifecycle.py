"""From the engine's calls to the account and back: records, outputs, drift, faults."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

from sandbox.aws import existing, mishaps, schema
from sandbox.aws.account import Record
from sandbox.aws.cloud import Cloud
from sandbox.aws.errors import AwsError
from sandbox.aws.inputs import DEFAULTS_KEY, without_defaults
from sandbox.aws.kinds import ResourceKind
from sandbox.aws.life import LIVES
from sandbox.aws.life.base import At, Life, Outputs
from sandbox.aws.life.eks import ensure_log_group
from sandbox.aws.life.eks_calls import CLUSTER
from sandbox.aws.life.keys_and_logs import LOG_GROUP
from sandbox.aws.life.node_groups import nodes_of
from sandbox.aws.paths import pattern_of
from sandbox.calls import CURRENT
from sandbox.faults import FaultKind, FaultPlan
from sandbox.inventory import Item
from sandbox.nodes import Node
from sandbox.standin import InitFailed, ResourceRef, StandInError

# What TF's SDK gives a computed attribute that nobody set.
_EMPTY: Final[Mapping[str, Any]] = {"string": "", "integer": 0, "number": 0, "boolean": False, "list": [], "map": {}}


class Lifecycle:
    """Makes, reads, changes and deletes what a program asks for."""

    def __init__(self, cloud: Cloud, faults: FaultPlan) -> None:
        self._cloud = cloud
        self._faults = faults

    def create(self, ref: ResourceRef, inputs: Mapping[str, Any], region: str) -> tuple[str, Outputs]:
        """Makes a resource and returns its id and outputs.

        Raises:
            StandInError: AWS refuses it, in the provider's words.
            InitFailed: It exists, but did not become what was asked for.
        """
        life = _life(ref.token)
        plain = _with_all_tags(without_defaults(inputs))
        with self._cloud.account.operation():
            at = self._at(plain, region)
            fault = mishaps.of_create(self._faults, ref.token, ref.name, plain, life, at)
            with _words(life.making(plain)):
                _refuse(fault, life, life.creating, ref.token, "")
                record = life.create(at, plain)
            self._cloud.account.put(record)
            reason = life.started(replace(at, fault=fault), record)
            record = self._cloud.account.record(record.token, record.id, record.region) or record
            if reason:
                # tfbridge's Create after a failed Apply that had set an id: what was planned, and no computed output.
                outputs = _known(ref.token, plain)
                raise InitFailed(record.id, inputs, outputs, [f"creating {ref.urn}: {_one_error(reason)}"])
            return record.id, self._outputs(life, at, record, plain)

    def read(
        self,
        ref: ResourceRef,
        id: str,
        inputs: Mapping[str, Any],
        outputs: Mapping[str, Any],
        kind: ResourceKind,
        region: str,
    ) -> tuple[str, dict[str, Any], Outputs] | None:
        """Looks at a resource; what is as it was keeps its old value, so that only drift differs. None when it is gone."""
        with self._cloud.account.operation():
            at = self._at(inputs, region)
            if mishaps.of_read(self._faults, ref.token, ref.name):
                return None
            record = self._cloud.account.record(ref.token, id, at.region)
            if record is None:
                # A refresh reads what the stack only looks at with its outputs, as it does what somebody has deleted.
                return None if outputs and not existing.can_read(ref.token) else self._read_existing(ref, id, at)
            now = self._look(_life(ref.token), at, record)
            if now is None:
                return None
            before = dict(outputs)
            after = {**before, **{key: _kept(before.get(key), value, kind, key) for key, value in now.items()}}
            given = {
                key: value if key == DEFAULTS_KEY else _drifted(value, before.get(key), after.get(key))
                for key, value in inputs.items()
            }
            return id, given or _importable(ref.token, after), after

    def update(
        self, ref: ResourceRef, id: str, old_outputs: Mapping[str, Any], new_inputs: Mapping[str, Any], region: str
    ) -> Outputs:
        """Changes a resource and returns its outputs.

        Raises:
            StandInError: AWS refuses it, or it is gone.
        """
        life = _life(ref.token)
        plain = _with_all_tags(without_defaults(new_inputs))
        with self._cloud.account.operation():
            at = self._at(plain, region)
            record = self._record(ref.token, id, at.region)
            with _words(f"updating {life.called(record)}"):
                self._retag(life, at, record, plain)
                record = self._cloud.account.record(ref.token, id, at.region) or record
                record = replace(life.update(at, record, plain), inputs=plain)
            self._cloud.account.put(record)
            return self._outputs(life, at, record, plain)

    def delete(self, ref: ResourceRef, id: str, inputs: Mapping[str, Any], region: str) -> None:
        """Deletes a resource; one that is gone already is no fault.

        Raises:
            StandInError: AWS refuses it, in the provider's words.
        """
        with self._cloud.account.operation():
            at = self._at(inputs, region)
            record = self._cloud.account.record(ref.token, id, at.region)
            if record is None:
                return
            life = _life(ref.token)
            fault = mishaps.of_delete(self._faults, ref.token, ref.name)
            with _words(f"deleting {life.called(record)}"):
                _refuse(fault, life, life.deleting, ref.token, id)
            self._remove(life, at, record)

    def remove(self, item: Item) -> None:
        """Deletes something from the inventory, whoever made it.

        Raises:
            StandInError: AWS refuses it: something else uses it.
        """
        with self._cloud.account.operation():
            for record in self._cloud.account.records():
                if record.id == item.id and _life(record.token).kind == item.kind:
                    self._remove(_life(record.token), At(self._cloud, record.region), record)

    def inventory(self) -> list[Item]:
        """Everything that a program, or AWS in its wake, has made and that still exists."""
        with self._cloud.account.operation():
            found = []
            for record in self._cloud.account.records():
                life = _life(record.token)
                outputs = self._look(life, At(self._cloud, record.region), record)
                if outputs is not None:
                    found.append(_item(life, record, outputs))
            return found

    def cluster_endpoints(self) -> dict[str, str]:
        """API server endpoint -> name of each cluster."""
        with self._cloud.account.operation():
            found = {}
            for record in self._cloud.account.records(CLUSTER):
                outputs = self._look(_life(CLUSTER), At(self._cloud, record.region), record)
                if outputs is not None:
                    found[outputs["endpoint"]] = record.id
            return found

    def nodes(self, cluster: str) -> list[Node]:
        """The nodes of a cluster."""
        with self._cloud.account.operation():
            return [
                node
                for record in self._cloud.account.records(CLUSTER)
                if record.id == cluster
                for node in nodes_of(At(self._cloud, record.region), cluster)
            ]

    def _at(self, inputs: Mapping[str, Any], region: str) -> At:
        return At(self._cloud, inputs.get("region") or region, CURRENT.get().timeout_seconds)

    def _record(self, token: str, id: str, region: str) -> Record:
        found = self._cloud.account.record(token, id, region)
        if found is None or self._look(_life(token), At(self._cloud, region), found) is None:
            # tfbridge's Update.
            raise StandInError(
                f"Resource provider reported that the resource did not exist while updating {id}.\n\nThis is usually a result "
                "of the resource having been deleted outside of Pulumi, and can often be fixed by running `pulumi refresh` "
                "before updating."
            )
        return found

    def _look(self, life: Life, at: At, record: Record) -> Outputs | None:
        return life.look(at, record)

    def _outputs(self, life: Life, at: At, record: Record, inputs: Mapping[str, Any]) -> Outputs:
        now = self._look(life, at, record)
        assert now is not None, f"{record.key} is gone right after it was made"
        described = schema.resource(record.token)
        assert described is not None
        outputs = {**_known(record.token, inputs), **now}
        for name in described.computed - outputs.keys():
            outputs[name] = _EMPTY.get(described.outputs[name].kind)
        return {key: value for key, value in outputs.items() if value is not None}

    def _remove(self, life: Life, at: At, record: Record) -> None:
        if self._look(life, at, record) is not None:
            with _words(f"deleting {life.called(record)}"):
                life.delete(at, record)
        self._cloud.account.drop(record)
        _after(at, record)

    def _retag(self, life: Life, at: At, record: Record, inputs: Mapping[str, Any]) -> None:
        before, after = dict(record.inputs.get("tagsAll") or {}), dict(inputs.get("tagsAll") or {})
        if before != after:
            life.tag(at, record, after, sorted(before.keys() - after.keys()))

    def _read_existing(self, ref: ResourceRef, id: str, at: At) -> tuple[str, dict[str, Any], Outputs] | None:
        found = existing.read(ref.token, id, self._cloud, at.region)
        return None if found is None else (id, _importable(ref.token, found), found)


@contextmanager
def _words(doing: str) -> Iterator[None]:
    """Puts a refusal into the provider's frame, as multierror prints it through the bridge."""
    try:
        yield
    except AwsError as refused:
        raise StandInError(_one_error(f"{doing}: {refused}")) from refused


def _one_error(text: str) -> str:
    return f"1 error occurred:\n\t* {text}\n\n"


def _refuse(fault: FaultKind | None, life: Life, action: str, token: str, id: str) -> None:
    refusal = mishaps.refusal(fault, life, action, token, id)
    if refusal is not None:
        raise refusal


def _with_all_tags(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    # The provider's newer half takes no tagsAll from the program (defaults.planned_tags_all).
    given = inputs.get("tags")
    return {**inputs, "tagsAll": given} if given and "tagsAll" not in inputs else inputs


def _life(token: str) -> Life:
    if token not in LIVES:
        raise StandInError(f"the sandbox previews {token} but cannot make it: add it to sandbox/aws/life")
    return LIVES[token]


def _known(token: str, inputs: Mapping[str, Any]) -> Outputs:
    described = schema.resource(token)
    assert described is not None
    return {key: value for key, value in inputs.items() if key in described.outputs}


def _importable(token: str, outputs: Mapping[str, Any]) -> dict[str, Any]:
    described = schema.resource(token)
    assert described is not None
    return {key: value for key, value in outputs.items() if key in described.inputs}


def _item(life: Life, record: Record, outputs: Mapping[str, Any]) -> Item:
    tags = outputs.get("tags") or {}
    parent = record.facts["parent"] if record.by_aws and "parent" in record.facts else life.parent(record)
    name = tags.get("Name") or outputs.get("name") or record.inputs.get("name") or record.id
    return Item(life.kind, record.id, name, tags, parent, "" if record.by_aws else record.token)


def _after(at: At, record: Record) -> None:
    # A control plane that still writes logs makes its group anew.
    if record.token == LOG_GROUP:
        for cluster in at.account.records(CLUSTER):
            if cluster.inputs.get("enabledClusterLogTypes") and record.id == f"/aws/eks/{cluster.id}/cluster":
                ensure_log_group(at, cluster.id)


def _kept(before: Any, after: Any, kind: ResourceKind, path: str) -> Any:
    """The old value where the new one means the same: lists without order, objects that were given in part."""
    if before == after or before is None:
        return after
    if not (isinstance(before, list) and isinstance(after, list)):
        return after
    unordered = pattern_of(path) in kind.sets or not any(isinstance(one, Mapping) for one in before)
    return before if unordered and sorted(before, key=repr) == sorted(after, key=repr) else after


def _drifted(given: Any, before: Any, after: Any) -> Any:
    """An input after a look: what was asked for, unless AWS says something else than it did."""
    return given if before == after else after
