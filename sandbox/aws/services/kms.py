"""KMS: keys and their aliases."""

from collections.abc import Mapping
from types import MappingProxyType

from sandbox.aws.kinds import ApiShape, ResourceKind
from sandbox.aws.rules import between, conflicts, json_document, matches

_SOURCE = "internal/service/kms/"

KINDS: Mapping[str, ResourceKind] = {
    "aws:kms/key:Key": ResourceKind(
        source=_SOURCE + "key.go",
        replaces=frozenset({"customKeyStoreId", "customerMasterKeySpec", "keyUsage", "multiRegion", "xksKeyId"}),
        defaults=MappingProxyType(
            {
                "bypassPolicyLockoutSafetyCheck": False,
                "customerMasterKeySpec": "SYMMETRIC_DEFAULT",
                "enableKeyRotation": False,
                "isEnabled": True,
                "keyUsage": "ENCRYPT_DECRYPT",
            }
        ),
        api=ApiShape("kms", "CreateKeyRequest"),
        rules=(
            between("deletionWindowInDays", 7, 30),
            between("rotationPeriodInDays", 90, 2560),
            json_document("policy"),
        ),
    ),
    "aws:kms/alias:Alias": ResourceKind(
        source=_SOURCE + "alias.go",
        replaces=frozenset({"name", "namePrefix"}),
        rules=(
            conflicts("name", "namePrefix"),
            matches("name", r"alias/[a-zA-Z0-9/_-]+", "alias/name"),
        ),
    ),
}
