"""Names that the provider makes up: the logical name and seven hex digits, known in a preview and stable afterwards.

Which property gets one, and how long it may be, is stated in pulumi/pulumi-aws provider/resources.go and autonaming.go:
every input called ``name`` that need not be given, and the properties listed here.
"""

import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sandbox.aws.inputs import DEFAULTS_KEY
from sandbox.aws.schema import ResourceSchema
from sandbox.standin import CheckFailure

_HEX_DIGITS = 7


@dataclass(frozen=True)
class AutoName:
    """How a property is named: at most ``max_length`` characters, ``prefix`` in front, unless ``rival`` is given."""

    key: str = "name"
    max_length: int = 255
    prefix: str = ""

    @property
    def rival(self) -> str:
        """The property that takes its place (``namePrefix``): the two conflict."""
        return f"{self.key}Prefix"


_SPECIAL = {
    "aws:cloudwatch/eventRule:EventRule": AutoName(max_length=64),
    "aws:ec2/keyPair:KeyPair": AutoName("keyName"),
    "aws:efs/fileSystem:FileSystem": AutoName("creationToken"),
    "aws:eks/fargateProfile:FargateProfile": AutoName("fargateProfileName"),
    "aws:eks/nodeGroup:NodeGroup": AutoName("nodeGroupName"),
    "aws:iam/role:Role": AutoName(max_length=64),
    "aws:kms/alias:Alias": AutoName(max_length=238, prefix="alias/"),
    "aws:lambda/function:Function": AutoName(max_length=64),
}
_NEVER = frozenset({"aws:route53/record:Record", "aws:directoryservice/directory:Directory"})


def auto_name_of(schema: ResourceSchema) -> AutoName | None:
    """The rule for this type; None when all its names are the user's."""
    rule = _SPECIAL.get(schema.token, AutoName())
    field = schema.inputs.get(rule.key)
    if field is None or field.required or schema.token in _NEVER:
        return None
    return rule


def fill_in(
    rule: AutoName, logical_name: str, inputs: dict[str, Any], old: Mapping[str, Any] | None, random_seed: bytes
) -> list[CheckFailure]:
    """Puts a name into ``inputs`` where none was given; an old made-up name is kept."""
    if rule.key in inputs or rule.rival in inputs:
        return []
    if old and rule.key in old.get(DEFAULTS_KEY, ()):
        inputs[rule.key] = old[rule.key]
    else:
        longest = rule.max_length - _HEX_DIGITS - 1
        if len(logical_name) > longest:
            reason = (
                f"cannot be made from the resource's name, which has {len(logical_name)} characters: "
                f"{longest} are possible before the random ones; shorten the resource's name or set {rule.key}"
            )
            return [CheckFailure(rule.key, reason)]
        inputs[rule.key] = f"{rule.prefix}{logical_name}-{_random(logical_name, random_seed)}"
    inputs.setdefault(DEFAULTS_KEY, []).append(rule.key)
    return []


def is_fixed(rule: AutoName | None, old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether the user fixed the name and keeps it: a replacement must then delete first, or the names clash.

    pulumi/pulumi-terraform-bridge pkg/tfbridge/provider.go, nameRequiresDeleteBeforeReplace.
    """
    if rule is None or new.get(rule.key) is None or rule.key in new.get(DEFAULTS_KEY, ()):
        return False
    return old.get(rule.key) == new[rule.key]


def _random(logical_name: str, random_seed: bytes) -> str:
    if not random_seed:
        return secrets.token_hex(_HEX_DIGITS)[:_HEX_DIGITS]
    return hashlib.sha256(random_seed + logical_name.encode()).hexdigest()[:_HEX_DIGITS]
