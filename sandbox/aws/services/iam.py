"""IAM: roles, policies and what ties them together."""

from collections.abc import Mapping
from types import MappingProxyType

from sandbox.aws.kinds import ResourceKind
from sandbox.aws.rules import between, conflicts, json_document, length, matches

_SOURCE = "internal/service/iam/"
_NAME = r"[\w+=,.@-]+"
_NAME_FORM = "letters, digits and +=,.@-_ (a role's name, not its ARN)"
_POLICY_ARN = r"arn:[\w-]+:iam::(\d{12}|aws):policy/.+"

KINDS: Mapping[str, ResourceKind] = {
    "aws:iam/role:Role": ResourceKind(
        source=_SOURCE + "role.go",
        replaces=frozenset({"name", "namePrefix", "path"}),
        sets=frozenset({"inlinePolicies", "managedPolicyArns"}),
        defaults=MappingProxyType({"forceDetachPolicies": False, "maxSessionDuration": 3600, "path": "/"}),
        rules=(
            conflicts("name", "namePrefix"),
            length("name", 1, 64),
            matches("name", _NAME, _NAME_FORM),
            json_document("assumeRolePolicy"),
            json_document("inlinePolicies[].policy"),
            between("maxSessionDuration", 3600, 43200),
        ),
    ),
    "aws:iam/policy:Policy": ResourceKind(
        source=_SOURCE + "policy.go",
        replaces=frozenset({"description", "name", "namePrefix", "path"}),
        defaults=MappingProxyType({"path": "/"}),
        rules=(conflicts("name", "namePrefix"), length("name", 1, 128), json_document("policy")),
    ),
    "aws:iam/rolePolicy:RolePolicy": ResourceKind(
        source=_SOURCE + "role_policy.go",
        replaces=frozenset({"name", "namePrefix", "role"}),
        rules=(conflicts("name", "namePrefix"), matches("role", _NAME, _NAME_FORM), json_document("policy")),
    ),
    "aws:iam/rolePolicyAttachment:RolePolicyAttachment": ResourceKind(
        source=_SOURCE + "role_policy_attachment.go",
        replaces=frozenset({"policyArn", "role"}),
        delete_before_replace=True,
        rules=(
            matches("policyArn", _POLICY_ARN, "arn:aws:iam::aws:policy/AmazonEKSWorkerNodePolicy"),
            matches("role", _NAME, _NAME_FORM),
        ),
    ),
    "aws:iam/instanceProfile:InstanceProfile": ResourceKind(
        source=_SOURCE + "instance_profile.go",
        replaces=frozenset({"name", "namePrefix", "path"}),
        defaults=MappingProxyType({"path": "/"}),
        rules=(conflicts("name", "namePrefix"), length("name", 1, 128)),
    ),
    "aws:iam/openIdConnectProvider:OpenIdConnectProvider": ResourceKind(
        source=_SOURCE + "openid_connect_provider.go",
        replaces=frozenset({"url"}),
        sets=frozenset({"clientIdLists"}),
        rules=(matches("url", r"https://\S+", "https://..."),),
    ),
}
