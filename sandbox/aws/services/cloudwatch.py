"""CloudWatch Logs."""

from collections.abc import Mapping
from types import MappingProxyType

from sandbox.aws.kinds import ApiShape, ResourceKind
from sandbox.aws.rules import conflicts, length, matches, one_of

_RETENTION_DAYS = (
    *(0, 1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545),
    *(731, 1096, 1827, 2192, 2557, 2922, 3288, 3653),
)

KINDS: Mapping[str, ResourceKind] = {
    "aws:cloudwatch/logGroup:LogGroup": ResourceKind(
        source="internal/service/logs/group.go",
        replaces=frozenset({"logGroupClass", "name", "namePrefix"}),
        defaults=MappingProxyType({"retentionInDays": 0, "skipDestroy": False}),
        api=ApiShape("logs", "CreateLogGroupRequest"),
        rules=(
            conflicts("name", "namePrefix"),
            length("name", 1, 512),
            matches("name", r"[a-zA-Z0-9_/.#-]+", "/aws/eks/name/cluster"),
            one_of("retentionInDays", *_RETENTION_DAYS),
        ),
    ),
}
