"""What a resource type's life is: made, looked at, changed, taken away, in terms of AWS's API."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from sandbox.aws import seeds
from sandbox.aws.account import Account, Record
from sandbox.aws.cloud import Cloud
from sandbox.aws.errors import AwsError
from sandbox.aws.existing import partition_of
from sandbox.faults import FaultKind

Outputs = dict[str, Any]


@dataclass(frozen=True)
class At:
    """Where a call happens.

    Attributes:
        cloud: The account.
        region: The region.
        timeout: The resource's own time limit, in seconds; 0 where the program sets none.
        fault: What is to go wrong after AWS has accepted the request.
    """

    cloud: Cloud
    region: str
    timeout: float = 0.0
    fault: FaultKind | None = None

    @property
    def account(self) -> Account:
        """The records of the account."""
        return self.cloud.account

    def call(self, service: str, operation: str, /, **parameters: Any) -> dict[str, Any]:
        """Makes an API call in this region; a parameter that is None is left out.

        Raises:
            AwsError: AWS refuses it.
        """
        given = {key: value for key, value in parameters.items() if value is not None}
        return self.cloud.call(service, operation, self.region, **given)

    def ec2(self, operation: str, /, **parameters: Any) -> dict[str, Any]:
        """Makes an EC2 call."""
        return self.call("ec2", operation, **parameters)

    def found(self, service: str, operation: str, /, **parameters: Any) -> dict[str, Any] | None:
        """A read's answer, None where AWS knows no such thing."""
        try:
            return self.call(service, operation, **parameters)
        except AwsError as refusal:
            if "NotFound" in refusal.code or refusal.code in ("NoSuchEntity", "ResourceNotFoundException"):
                return None
            raise

    def arn(self, service: str, resource: str, *, region: bool = True) -> str:
        """The ARN of something in the account."""
        where = self.region if region else ""
        return f"arn:{partition_of(self.region)['partition']}:{service}:{where}:{seeds.ACCOUNT_ID}:{resource}"


class Life(ABC):
    """How resources of one type live.

    Attributes:
        service: The AWS service as boto3 names it.
        kind: The type in the inventory, in the words of ARNs.
        subject: What the provider calls it in its messages (internal/service/... of hashicorp/terraform-provider-aws).
        creating: The API action that makes it, and ``deleting`` the one that takes it away.
        waits: (state that is waited for, state until then, minutes) where the provider waits for a new one.
    """

    service: ClassVar[str]
    kind: ClassVar[str]
    subject: ClassVar[str]
    creating: ClassVar[str]
    deleting: ClassVar[str]
    waits: ClassVar[tuple[str, str, int] | None] = None

    def label(self, inputs: Mapping[str, Any]) -> str:
        """How the provider names one that has no id yet; empty where it does not."""
        return ""

    def making(self, inputs: Mapping[str, Any]) -> str:
        """What the provider says it was doing when a create was refused."""
        return f"creating {self.subject}{self.label(inputs)}"

    def called(self, record: Record) -> str:
        """What the provider calls one that exists."""
        return f"{self.subject} ({record.id})"

    @abstractmethod
    def create(self, at: At, inputs: Mapping[str, Any]) -> Record:
        """Makes it and returns its record, which the caller files.

        Raises:
            AwsError: AWS refuses it.
        """

    @abstractmethod
    def look(self, at: At, record: Record) -> Outputs | None:
        """What AWS says of it now, in the provider's terms; None when it is gone. What was given and cannot be asked is left out."""

    def started(self, at: At, record: Record) -> str:
        """Why it did not become what was asked for, in the provider's words; empty when it did. Its record is filed by then."""
        return self.timed_out(at, record) if at.fault is FaultKind.TIME_OUT else ""

    def timed_out(self, at: At, record: Record) -> str:
        """What the provider says when its wait for a new one ends too early."""
        assert self.waits is not None
        wanted, meanwhile, minutes = self.waits
        limit = _go_duration(at.timeout or minutes * 60)
        return (
            f"waiting for {self.subject} ({record.id}) create: timeout while waiting for state to become '{wanted}' "
            f"(last state: '{meanwhile}', timeout: {limit})"
        )

    def update(self, at: At, record: Record, inputs: Mapping[str, Any]) -> Record:
        """Changes it to new inputs and returns its record. ``tagsAll`` is the caller's matter.

        Raises:
            AwsError: AWS refuses it.
        """
        return record

    @abstractmethod
    def delete(self, at: At, record: Record) -> None:
        """Takes it away.

        Raises:
            AwsError: AWS refuses it, because something still uses it.
        """

    def tag(self, at: At, record: Record, tags: Mapping[str, str], gone: list[str]) -> None:
        """Sets tags and takes away those in ``gone``."""
        raise AssertionError(f"{self.kind} has no tags")

    def parent(self, record: Record) -> str | None:
        """The id of what it belongs to, for a type that cannot be tagged."""
        return None


def tag_list(tags: Any, key: str = "Key", value: str = "Value") -> list[dict[str, str]]:
    """A mapping as AWS's list of tags."""
    return [{key: name, value: text} for name, text in (tags or {}).items()]


def tags_of(row: Mapping[str, Any], key: str = "Key", value: str = "Value") -> dict[str, str]:
    """AWS's list of tags as a mapping."""
    return {one[key]: one[value] for one in row.get("Tags") or row.get("TagSet") or []}


def with_tags(outputs: Outputs, tags: Mapping[str, str]) -> Outputs:
    """Outputs with tags as AWS has them; AWS's own (``aws:``) are nobody's to manage."""
    own = {key: value for key, value in tags.items() if not key.startswith("aws:")}
    return {**outputs, "tags": own, "tagsAll": own}


def changed(record: Record, inputs: Mapping[str, Any], *names: str) -> bool:
    """Whether one of these inputs is to change."""
    return any(record.inputs.get(name) != inputs.get(name) for name in names)


def holders(account: Account, region: str, id: str, *places: tuple[str, str]) -> Iterator[Record]:
    """Records of (token, property) whose property holds an id. A property is ``a``, ``a.b``, or a list of ids."""
    for token, path in places:
        for record in account.records(token):
            value: Any = record.inputs
            for step in path.split("."):
                value = value.get(step) if isinstance(value, Mapping) else None
            if record.region == region and (value == id or (isinstance(value, list) and id in value)):
                yield record


def _go_duration(seconds: float) -> str:
    # time.Duration.String of Go: 40m0s, 1h0m0s.
    hours, rest = divmod(int(seconds), 3600)
    minutes, left = divmod(rest, 60)
    return f"{hours}h{minutes}m{left}s" if hours else f"{minutes}m{left}s" if minutes else f"{left}s"
