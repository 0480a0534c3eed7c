"""One simulated account: moto's part of it, the records of what was made in it, and the journal that keeps both."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from sandbox.aws import seeds
from sandbox.aws.errors import AwsError
from sandbox.aws.journal import ApiCall, Entry, Journal
from sandbox.standin import StandInError

# moto's backends belong to the process and are not made for concurrent use.
LOCK = threading.RLock()

_READS = ("describe_", "get_", "list_", "head_")


@dataclass(frozen=True)
class Record:
    """Something that was made in the account.

    Attributes:
        token: Its resource type.
        id: Its id as pulumi-aws gives it.
        region: Its region.
        inputs: What was asked for, without the bridge's notes.
        facts: Whatever else is known of it; for what moto lacks, all of it.
        by_aws: AWS made it by itself; no program has it.
    """

    token: str
    id: str
    region: str
    inputs: Mapping[str, Any] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    by_aws: bool = False

    @property
    def key(self) -> str:
        """What it is filed under."""
        return f"{self.token}|{self.region}|{self.id}"


class Account:
    """An account in a folder, or in memory only. All of a process's accounts share moto, one at a time."""

    _in_moto: ClassVar["Account | None"] = None

    def __init__(self, folder: Path | None = None) -> None:
        self._journal = Journal(folder)
        self._parked: list[tuple[Any, dict[Any, Any]]] = []
        self._records: dict[str, Record] = {}
        self._clients: dict[tuple[str, str], Any] = {}
        self._next_call = 0
        self._entry: Entry | None = None
        self._started = False

    @contextmanager
    def operation(self) -> Iterator[None]:
        """What is done inside is kept as one: all of it, however it ends, unless the process is killed in the middle."""
        with LOCK:
            if self._entry is not None:
                yield
                return
            self._enter()
            self._entry = Entry(self._next_call)
            try:
                yield
            finally:
                entry, self._entry = self._entry, None
                if not entry.empty:
                    self._journal.append(entry)

    def call(self, service: str, operation: str, region: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Makes an API call.

        Raises:
            AwsError: AWS refuses it.
            StandInError: botocore does; the text is its own.
        """
        from botocore.exceptions import ClientError, ParamValidationError

        with self.operation():
            client = self._client(service, region)
            if not operation.startswith(_READS):
                assert self._entry is not None
                _seed(f"call {self._next_call}")
                self._next_call += 1
                self._entry.calls.append(ApiCall(service, operation, region, parameters))
            try:
                return getattr(client, operation)(**parameters)
            except ClientError as refusal:
                error = refusal.response["Error"]
                status = refusal.response["ResponseMetadata"]["HTTPStatusCode"]
                action = refusal.operation_name
                raise AwsError(service, action, error["Code"], error["Message"], status) from refusal
            except ParamValidationError as refusal:
                raise StandInError(str(refusal)) from refusal

    def put(self, record: Record) -> None:
        """Files a record, over an older one of the same thing."""
        with self.operation():
            assert self._entry is not None
            self._records[record.key] = record
            self._entry.records[record.key] = asdict(record)

    def note(self, record: Record, **facts: Any) -> Record:
        """Adds facts to a record and returns it as it is now."""
        newer = replace(record, facts={**record.facts, **facts})
        self.put(newer)
        return newer

    def drop(self, record: Record) -> None:
        """Takes a record away."""
        with self.operation():
            assert self._entry is not None
            if self._records.pop(record.key, None) is not None:
                self._entry.records[record.key] = None

    def record(self, token: str, id: str, region: str) -> Record | None:
        """The record of one thing."""
        with self.operation():
            return self._records.get(Record(token, id, region).key)

    def records(self, *tokens: str) -> list[Record]:
        """Records in the order of their making; of all types where none is named."""
        with self.operation():
            return [one for one in self._records.values() if not tokens or one.token in tokens]

    def unique(self, prefix: str, digits: int = 17) -> str:
        """A new id of AWS's form for what moto lacks: ``pg-0c1a...``."""
        from moto.moto_api._internal import mock_random

        with self.operation():
            assert self._entry is not None
            _seed(f"id {self._next_call} {len(self._entry.records)} {len(self._records)} {prefix}")
            return prefix + mock_random.get_random_hex(digits)

    def _enter(self) -> None:
        if Account._in_moto is not self:
            if Account._in_moto is not None:
                Account._in_moto._leave()
            _start_moto()
            Account._in_moto = self
            self._bring_back()
        if not self._started or self._journal.is_behind():
            self._replay()

    def _leave(self) -> None:
        self._parked = [(one, dict(one.items())) for one in _moto_state()]
        _empty_moto()

    def _bring_back(self) -> None:
        for backends, content in self._parked:
            backends.update(content)
            _moto_state().append(backends)
        self._parked = []

    def _replay(self) -> None:
        from botocore.exceptions import ClientError

        self._started = True
        self._records.clear()
        self._clients.clear()
        self._next_call = 0
        _empty_moto()
        seeds.make_existing_network(self._client)
        only_recorded = True
        for entry in self._journal.read():
            only_recorded &= bool(entry.records) or not entry.calls
            self._next_call = entry.first
            for one in entry.calls:
                client = self._client(one.service, one.region)
                _seed(f"call {self._next_call}")
                self._next_call += 1
                try:
                    getattr(client, one.operation)(**one.parameters)
                except ClientError:
                    continue
            for key, found in entry.records.items():
                if found is None:
                    self._records.pop(key, None)
                else:
                    self._records[key] = Record(**found)
        # What was called behind the records' back may have left something that they do not show.
        if self._next_call and only_recorded and not self._records:
            self._journal.start_over(self._next_call)

    def _client(self, service: str, region: str) -> Any:
        key = (service, region)
        if key not in self._clients:
            self._clients[key] = _boto_client(service, region)
            # A backend draws ids for what AWS gives each region (default VPC); drawn in the middle of a call they
            # would shift that call's own.
            _seed(f"region {service} {region}")
            _wake(service, region)
        return self._clients[key]


@cache
def _start_moto() -> None:
    from moto import mock_aws

    # The process's own credentials stay as they are: the engine's children inherit the environment.
    mock_aws(config={"core": {"mock_credentials": False}}).start()


@cache
def _boto_client(service: str, region: str) -> Any:
    import boto3

    session = boto3.Session(aws_access_key_id="sandbox", aws_secret_access_key="sandbox")
    client = session.client(service, region_name=region)
    # Without it moto looks for the access key in the IAM of every partition, half a second each.
    client.meta.events.register("before-sign", _name_account)
    return client


def _name_account(request: Any, **_: Any) -> None:
    request.headers["x-moto-account-id"] = seeds.ACCOUNT_ID


def _wake(service: str, region: str) -> None:
    from moto import backends as moto_backends
    from moto.utilities.utils import get_partition

    get_backend: Any = moto_backends.get_backend
    backends = get_backend(service)[seeds.ACCOUNT_ID]
    backend = backends[region if region in backends else get_partition(region)]
    if service == "iam" and not backend.managed_policies:
        backend.managed_policies.update({arn: copy(policy) for arn, policy in _aws_managed_policies().items()})


@cache
def _aws_managed_policies() -> Mapping[str, Any]:
    # moto reads them anew for every account and partition.
    from moto.iam import models
    from moto.iam.aws_managed_policies import aws_managed_policies_data

    _seed("managed policies")
    read = json.loads(aws_managed_policies_data)
    policies = (
        models.AWSManagedPolicy.from_data(name, seeds.ACCOUNT_ID, "us-east-1", one) for name, one in read.items()
    )
    return {one.arn: one for one in policies}


def _empty_moto() -> None:
    for backends in _moto_state():
        backends.clear()
    _moto_state().clear()


def _moto_state() -> list[dict[Any, Any]]:
    # Every service's state that anything was asked of: one dictionary a service, account by account.
    from moto.core import base_backend

    return vars(base_backend.BackendDict)["_instances"]


def _seed(text: str) -> None:
    from moto.moto_api._internal import mock_random

    mock_random.seed(f"{seeds.SEED} {text}")
