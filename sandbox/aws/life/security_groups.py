"""Security groups and their rules, in the old form (SecurityGroupRule) and the new (one resource a rule)."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

from sandbox.aws.account import Record
from sandbox.aws.life.base import At, Life, Outputs, changed, holders, tags_of, with_tags
from sandbox.aws.life.ec2_calls import Ec2Life, has_interfaces, must_exist, plain, refused, row

GROUP = "aws:ec2/securityGroup:SecurityGroup"
OLD_RULE = "aws:ec2/securityGroupRule:SecurityGroupRule"
INGRESS = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
EGRESS = "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule"


class SecurityGroup(Ec2Life):
    """internal/service/ec2/vpc_security_group.go."""

    kind, subject, tagged_as = "ec2:security-group", "Security Group", "security-group"
    creating, deleting = "CreateSecurityGroup", "DeleteSecurityGroup"

    def label(self, inputs: Mapping[str, Any]) -> str:
        return f" ({inputs['name']})"

    def create(self, at: At, inputs: Mapping[str, Any]) -> Record:
        made = at.ec2(
            "create_security_group",
            GroupName=inputs["name"],
            Description=inputs["description"],
            VpcId=inputs.get("vpcId"),
            TagSpecifications=self.specification(inputs),
        )["GroupId"]
        # The provider takes away the allow-all egress rule that EC2 adds.
        everything = {"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}
        at.ec2("revoke_security_group_egress", GroupId=made, IpPermissions=[everything])
        record = Record(GROUP, made, at.region, inputs)
        self._change_rules(at, record, {}, inputs)
        return record

    def look(self, at: At, record: Record) -> Outputs | None:
        found = row(at, "describe_security_groups", "SecurityGroups", GroupIds=[record.id])
        if found is None:
            return None
        outputs = {
            "arn": at.arn("ec2", f"security-group/{record.id}"),
            "description": found["Description"],
            **self._rules(at, record),
            "name": found["GroupName"],
            "namePrefix": "",
            "ownerId": found["OwnerId"],
            "vpcId": found["VpcId"],
        }
        return with_tags(outputs, tags_of(found))

    def update(self, at: At, record: Record, inputs: Mapping[str, Any]) -> Record:
        self._change_rules(at, record, record.inputs, inputs)
        return record

    def delete(self, at: At, record: Record) -> None:
        delete_group(at, record.id)

    def _rules(self, at: At, record: Record) -> Outputs:
        # A refresh on AWS shows under the group what rule resources hold as well. Left out here: it is no drift, and the
        # next update does not touch it.
        owned = {one.id for one in at.account.records(INGRESS, EGRESS)}
        owned.update(id for one in at.account.records(OLD_RULE) for id in one.facts["rules"])
        inside = [{"Name": "group-id", "Values": [record.id]}]
        rows = at.ec2("describe_security_group_rules", Filters=inside)["SecurityGroupRules"]
        free = [one for one in rows if one["SecurityGroupRuleId"] not in owned]
        return {
            "egress": _inline([one for one in free if one["IsEgress"]], record.id),
            "ingress": _inline([one for one in free if not one["IsEgress"]], record.id),
        }

    def _change_rules(self, at: At, record: Record, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        for name in ("ingress", "egress"):
            before, after = old.get(name) or [], new.get(name) or []
            for rule in before:
                if rule not in after:
                    at.ec2(
                        f"revoke_security_group_{name}", GroupId=record.id, IpPermissions=[_permission(rule, record.id)]
                    )
            for rule in after:
                if rule not in before:
                    at.ec2(
                        f"authorize_security_group_{name}",
                        GroupId=record.id,
                        IpPermissions=[_permission(rule, record.id)],
                    )


class _SingleRule(Ec2Life):
    """internal/service/ec2/vpc_security_group_ingress_rule.go."""

    subject, tagged_as = "VPC Security Group Rule", "security-group-rule"
    token: ClassVar[str]
    direction: ClassVar[str]

    def create(self, at: At, inputs: Mapping[str, Any]) -> Record:
        must_exist(at, self.creating, inputs.get("referencedSecurityGroupId"))
        made = at.ec2(
            f"authorize_security_group_{self.direction}",
            GroupId=inputs["securityGroupId"],
            IpPermissions=[_single(inputs)],
            TagSpecifications=self.specification(inputs),
        )["SecurityGroupRules"][0]
        return Record(self.token, made["SecurityGroupRuleId"], at.region, inputs)

    def look(self, at: At, record: Record) -> Outputs | None:
        inside = [{"Name": "group-id", "Values": [record.inputs["securityGroupId"]]}]
        rows = at.ec2("describe_security_group_rules", Filters=inside)["SecurityGroupRules"]
        found = next((one for one in rows if one["SecurityGroupRuleId"] == record.id), None)
        if found is None:
            return None
        outputs = {
            "arn": at.arn("ec2", f"security-group-rule/{record.id}"),
            "cidrIpv4": found.get("CidrIpv4"),
            "description": found.get("Description"),
            "ipProtocol": found["IpProtocol"],
            "referencedSecurityGroupId": found.get("ReferencedGroupInfo", {}).get("GroupId"),
            "securityGroupId": found["GroupId"],
            "securityGroupRuleId": record.id,
            **(
                {}
                if found["IpProtocol"] == "-1"
                else {"fromPort": found.get("FromPort"), "toPort": found.get("ToPort")}
            ),
        }
        return with_tags({key: value for key, value in outputs.items() if value is not None}, tags_of(found))

    def update(self, at: At, record: Record, inputs: Mapping[str, Any]) -> Record:
        names = ("cidrIpv4", "description", "fromPort", "ipProtocol", "referencedSecurityGroupId", "toPort")
        if changed(record, inputs, *names):
            must_exist(at, "ModifySecurityGroupRules", inputs.get("referencedSecurityGroupId"))
            rule = {
                "IpProtocol": inputs["ipProtocol"],
                "FromPort": inputs.get("fromPort", -1),
                "ToPort": inputs.get("toPort", -1),
                "CidrIpv4": inputs.get("cidrIpv4"),
                "ReferencedGroupId": inputs.get("referencedSecurityGroupId"),
                "Description": inputs.get("description"),
            }
            changes = [
                {
                    "SecurityGroupRuleId": record.id,
                    "SecurityGroupRule": {k: v for k, v in rule.items() if v is not None},
                }
            ]
            at.ec2("modify_security_group_rules", GroupId=inputs["securityGroupId"], SecurityGroupRules=changes)
        return record

    def delete(self, at: At, record: Record) -> None:
        at.ec2(
            f"revoke_security_group_{self.direction}",
            GroupId=record.inputs["securityGroupId"],
            SecurityGroupRuleIds=[record.id],
        )


class IngressRule(_SingleRule):
    """A rule for traffic into a group."""

    token, direction, kind = INGRESS, "ingress", "ec2:security-group-rule"
    creating, deleting = "AuthorizeSecurityGroupIngress", "RevokeSecurityGroupIngress"


class EgressRule(_SingleRule):
    """A rule for traffic out of a group."""

    token, direction, kind = EGRESS, "egress", "ec2:security-group-rule"
    creating, deleting = "AuthorizeSecurityGroupEgress", "RevokeSecurityGroupEgress"


class OldRule(Life):
    """internal/service/ec2/vpc_security_group_rule.go. The id is the provider's own: ``sgrule-<hash>``."""

    service, kind, subject = "ec2", "ec2:security-group-permission", "Security Group Rule"
    creating, deleting = "AuthorizeSecurityGroupIngress", "RevokeSecurityGroupIngress"

    def create(self, at: At, inputs: Mapping[str, Any]) -> Record:
        must_exist(at, self.creating, inputs.get("sourceSecurityGroupId"))
        made = self._ask(at, "authorize", inputs)["SecurityGroupRules"]
        ids = [one["SecurityGroupRuleId"] for one in made]
        number = int(ids[0].removeprefix("sgr-")[:8], 16)
        return Record(OLD_RULE, f"sgrule-{number}", at.region, inputs, {"rules": ids})

    def look(self, at: At, record: Record) -> Outputs | None:
        inside = [{"Name": "group-id", "Values": [record.inputs["securityGroupId"]]}]
        rows = at.ec2("describe_security_group_rules", Filters=inside)["SecurityGroupRules"]
        if not set(record.facts["rules"]) & {one["SecurityGroupRuleId"] for one in rows}:
            return None
        ids = record.facts["rules"]
        return {"securityGroupRuleId": ids[0] if len(ids) == 1 else ""}

    def delete(self, at: At, record: Record) -> None:
        self._ask(at, "revoke", record.inputs)

    def parent(self, record: Record) -> str | None:
        return record.inputs["securityGroupId"]

    def _ask(self, at: At, verb: str, inputs: Mapping[str, Any]) -> dict[str, Any]:
        group = inputs["securityGroupId"]
        source = inputs.get("sourceSecurityGroupId")
        rule = {**inputs, "securityGroups": [source] if source else []}
        return at.ec2(
            f"{verb}_security_group_{inputs['type']}", GroupId=group, IpPermissions=[_permission(rule, group)]
        )


def delete_group(at: At, id: str) -> None:
    """Deletes a group.

    Raises:
        AwsError: DependencyViolation, while an interface carries it or another group's rule names it.
    """
    in_use = (
        ("aws:ec2/vpcEndpoint:VpcEndpoint", "securityGroupIds"),
        ("aws:eks/cluster:Cluster", "vpcConfig.securityGroupIds"),
    )
    used = any(holders(at.account, at.region, id, *in_use)) or has_interfaces(at, "group-id", id)
    if used or any(_named_by_others(at, id)):
        raise refused("DeleteSecurityGroup", "DependencyViolation", f"resource {id} has a dependent object")
    at.ec2("delete_security_group", GroupId=id)


def admits_https(at: At, group_ids: list[str]) -> bool:
    """Whether one of the groups lets HTTPS in, from wherever."""
    for group in group_ids:
        found = row(at, "describe_security_groups", "SecurityGroups", GroupIds=[group])
        for one in found["IpPermissions"] if found else ():
            if one["IpProtocol"] == "-1" or one.get("FromPort", 0) <= 443 <= one.get("ToPort", -1):
                return True
    return False


def _named_by_others(at: At, id: str) -> Iterator[str]:
    for group in at.ec2("describe_security_groups")["SecurityGroups"]:
        if group["GroupId"] == id:
            continue
        for one in (*group["IpPermissions"], *group["IpPermissionsEgress"]):
            if any(pair.get("GroupId") == id for pair in one.get("UserIdGroupPairs", ())):
                yield group["GroupId"]


def _single(inputs: Mapping[str, Any]) -> dict[str, Any]:
    about = plain({"Description": inputs.get("description")}, "Description")
    permission: dict[str, Any] = {"IpProtocol": inputs["ipProtocol"]}
    if inputs.get("fromPort") is not None:
        permission["FromPort"] = inputs["fromPort"]
    if inputs.get("toPort") is not None:
        permission["ToPort"] = inputs["toPort"]
    if inputs.get("cidrIpv4"):
        permission["IpRanges"] = [{"CidrIp": inputs["cidrIpv4"], **about}]
    if inputs.get("cidrIpv6"):
        permission["Ipv6Ranges"] = [{"CidrIpv6": inputs["cidrIpv6"], **about}]
    if inputs.get("prefixListId"):
        permission["PrefixListIds"] = [{"PrefixListId": inputs["prefixListId"], **about}]
    if inputs.get("referencedSecurityGroupId"):
        permission["UserIdGroupPairs"] = [{"GroupId": inputs["referencedSecurityGroupId"], **about}]
    return permission


def _permission(rule: Mapping[str, Any], group: str) -> dict[str, Any]:
    about = {"Description": rule["description"]} if rule.get("description") else {}
    permission: dict[str, Any] = {"IpProtocol": rule["protocol"]}
    if rule["protocol"] != "-1":
        permission.update(FromPort=rule["fromPort"], ToPort=rule["toPort"])
    peers = [*(rule.get("securityGroups") or ()), *([group] if rule.get("self") else ())]
    permission["IpRanges"] = [{"CidrIp": one, **about} for one in rule.get("cidrBlocks") or ()]
    permission["Ipv6Ranges"] = [{"CidrIpv6": one, **about} for one in rule.get("ipv6CidrBlocks") or ()]
    permission["UserIdGroupPairs"] = [{"GroupId": one, **about} for one in peers]
    return {key: value for key, value in permission.items() if value != []}


def _inline(rows: Iterable[Mapping[str, Any]], group: str) -> list[dict[str, Any]]:
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for one in rows:
        protocol, text = one["IpProtocol"], one.get("Description", "")
        first, last = (0, 0) if protocol == "-1" else (one["FromPort"], one["ToPort"])
        rule = found.setdefault(
            (protocol, first, last, text),
            {"description": text, "fromPort": first, "protocol": protocol, "self": False, "toPort": last},
        )
        peer = one.get("ReferencedGroupInfo", {}).get("GroupId")
        if peer == group:
            rule["self"] = True
        for name, value in (
            ("cidrBlocks", one.get("CidrIpv4")),
            ("ipv6CidrBlocks", one.get("CidrIpv6")),
            ("securityGroups", None if peer == group else peer),
        ):
            if value:
                rule.setdefault(name, []).append(value)
    return list(found.values())


LIVES: Mapping[str, Life] = {GROUP: SecurityGroup(), OLD_RULE: OldRule(), INGRESS: IngressRule(), EGRESS: EgressRule()}
