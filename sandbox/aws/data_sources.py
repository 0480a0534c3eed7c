"""The provider's functions, answered from moto where moto knows and from ``seeds`` where it does not."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sandbox.aws import existing, instance_data, policy_document, seeds
from sandbox.aws.cloud import Cloud
from sandbox.standin import StandInError

Arguments = Mapping[str, Any]
_Answer = Callable[[Arguments, Cloud, str], dict[str, Any]]


def answer(token: str, args: Arguments, cloud: Cloud, region: str) -> dict[str, Any]:
    """Answers a function, arguments already checked.

    Raises:
        StandInError: AWS refuses the question, or the sandbox does not know this function.
    """
    found = _ANSWERS.get(token)
    if found is None:
        known = ", ".join(sorted(one.rpartition(":")[2] for one in _ANSWERS))
        raise StandInError(f"the sandbox cannot answer {token}; it knows {known}")
    return found(args, cloud, region)


def _partition(args: Arguments, cloud: Cloud, region: str) -> dict[str, Any]:
    found = existing.partition_of(region)
    return {**found, "id": found["partition"]}


def _region(args: Arguments, cloud: Cloud, region: str) -> dict[str, Any]:
    name = args.get("name") or region
    if name not in cloud.regions():
        raise StandInError(f"aws:index/getRegion: finding Region using name ({name}): no matching region found")
    endpoint = f"ec2.{name}.{existing.partition_of(name)['dnsSuffix']}"
    return {"region": name, "name": name, "id": name, "endpoint": endpoint, "description": name}


def _caller(args: Arguments, cloud: Cloud, region: str) -> dict[str, Any]:
    found = cloud.call("sts", "get_caller_identity", region)
    return {
        "accountId": found["Account"],
        "arn": found["Arn"],
        "id": found["Account"],
        "userId": found["UserId"],
    }


def _zones(args: Arguments, cloud: Cloud, region: str) -> dict[str, Any]:
    rows = cloud.call("ec2", "describe_availability_zones", region, Filters=_filters(args))["AvailabilityZones"]
    kept = [
        row
        for row in rows
        if args.get("state") in (None, row["State"])
        and row["ZoneName"] not in args.get("excludeNames", ())
        and row["ZoneId"] not in args.get("excludeZoneIds", ())
    ]
    kept.sort(key=lambda row: row["ZoneName"])
    return {
        **args,
        "id": region,
        "region": region,
        "names": [row["ZoneName"] for row in kept],
        "zoneIds": [row["ZoneId"] for row in kept],
        "groupNames": [region] if kept else [],
    }


def _vpc(args: Arguments, cloud: Cloud, region: str) -> dict[str, Any]:
    properties = {"cidr": args.get("cidrBlock"), "state": args.get("state")}
    if args.get("default") is not None:
        properties["is-default"] = str(args["default"]).lower()
    row = _the_one("Vpc", cloud, region, args, properties, "vpc_ids")
    associations = [
        {
            "associationId": one["AssociationId"],
            "cidrBlock": one["CidrBlock"],
            "state": one["CidrBlockState"]["State"],
        }
        for one in row["CidrBlockAssociationSet"]
    ]
    return {
        **existing.vpc(row, cloud, region),
        "cidrBlockAssociations": associations,
        "default": row["IsDefault"],
        "filters": args.get("filters"),
        "ipv6CidrBlockAssociations": [],
        "state": row["State"],
    }


def _subnet(args: Arguments, cloud: Cloud, region: str) -> dict[str, Any]:
    properties = {
        "availability-zone": args.get("availabilityZone"),
        "cidr-block": args.get("cidrBlock"),
        "state": args.get("state"),
        "vpc-id": args.get("vpcId"),
    }
    row = _the_one("Subnet", cloud, region, args, properties, "subnet_ids")
    return {
        **existing.subnet(row, region),
        "availableIpAddressCount": row["AvailableIpAddressCount"],
        "defaultForAz": row["DefaultForAz"],
        "filters": args.get("filters"),
        "state": row["State"],
    }


def _subnets(args: Arguments, cloud: Cloud, region: str) -> dict[str, Any]:
    rows = cloud.call("ec2", "describe_subnets", region, Filters=_filters(args))["Subnets"]
    return {**args, "id": region, "region": region, "ids": [row["SubnetId"] for row in rows]}


def _security_group(args: Arguments, cloud: Cloud, region: str) -> dict[str, Any]:
    properties = {"group-name": args.get("name"), "vpc-id": args.get("vpcId")}
    row = _the_one("SecurityGroup", cloud, region, args, properties, "group_ids")
    return {
        "arn": existing.arn("ec2", region, f"security-group/{row['GroupId']}"),
        "description": row["Description"],
        "filters": args.get("filters"),
        "id": row["GroupId"],
        "name": row["GroupName"],
        "region": region,
        "tags": existing.tags_of(row),
        "vpcId": row["VpcId"],
    }


def _instance_type(args: Arguments, cloud: Cloud, region: str) -> dict[str, Any]:
    name = _needed("aws:ec2/getInstanceType", args, "instanceType")
    row = cloud.instance_type(name, region)
    if row is None or not cloud.zones_offering(name, region):
        raise StandInError(f"aws:ec2/getInstanceType: EC2 has no instance type {name} in {region}")
    return {**instance_data.described(row), "region": region}


def _instance_types(args: Arguments, cloud: Cloud, region: str) -> dict[str, Any]:
    rows = cloud.call("ec2", "describe_instance_types", region, Filters=_filters(args))["InstanceTypes"]
    return {**args, "id": region, "region": region, "instanceTypes": [row["InstanceType"] for row in rows]}


def _offerings(args: Arguments, cloud: Cloud, region: str) -> dict[str, Any]:
    kind = args.get("locationType") or "region"
    answer = cloud.call("ec2", "describe_instance_type_offerings", region, LocationType=kind, Filters=_filters(args))
    rows = answer["InstanceTypeOfferings"]
    return {
        **args,
        "id": region,
        "region": region,
        "instanceTypes": [row["InstanceType"] for row in rows],
        "locations": [row["Location"] for row in rows],
        "locationTypes": [row["LocationType"] for row in rows],
    }


def _addon_version(args: Arguments, cloud: Cloud, region: str) -> dict[str, Any]:
    name = _needed("aws:eks/getAddonVersion", args, "addonName")
    kubernetes = _needed("aws:eks/getAddonVersion", args, "kubernetesVersion")
    form = seeds.ADDON_VERSIONS.get(name)
    if form is None:
        known = ", ".join(sorted(seeds.ADDON_VERSIONS))
        raise StandInError(f"aws:eks/getAddonVersion: the sandbox has no version of add-on {name}; it knows {known}")
    return {**args, "id": name, "region": region, "version": form.format(kubernetes=kubernetes)}


def _policy_document(args: Arguments, cloud: Cloud, region: str) -> dict[str, Any]:
    return policy_document.answer(args)


def _parameter(args: Arguments, cloud: Cloud, region: str) -> dict[str, Any]:
    name = _needed("aws:ssm/getParameter", args, "name")
    row = cloud.call("ssm", "get_parameter", region, Name=name, WithDecryption=args.get("withDecryption", True))
    row = row["Parameter"]
    return {
        "arn": row["ARN"],
        "id": row["Name"],
        "insecureValue": row["Value"] if row["Type"] != "SecureString" else None,
        "name": row["Name"],
        "region": region,
        "type": row["Type"],
        "value": row["Value"],
        "version": row["Version"],
        "withDecryption": args.get("withDecryption", True),
    }


def _service_quota(args: Arguments, cloud: Cloud, region: str) -> dict[str, Any]:
    service = _needed("aws:servicequotas/getServiceQuota", args, "serviceCode")
    for (owner, code), (name, value) in seeds.QUOTAS.items():
        if owner == service and (args.get("quotaCode") == code or args.get("quotaName") == name):
            arn = existing.arn("servicequotas", region, f"{service}/{code}")
            return {
                "adjustable": True,
                "arn": arn,
                "defaultValue": 0.0,
                "globalQuota": False,
                "id": arn,
                "quotaCode": code,
                "quotaName": name,
                "region": region,
                "serviceCode": service,
                "serviceName": "Amazon Elastic Compute Cloud (Amazon EC2)",
                "usageMetrics": [],
                "value": value,
            }
    known = ", ".join(f"{code} ({name})" for (_, code), (name, _) in seeds.QUOTAS.items())
    raise StandInError(f"aws:servicequotas/getServiceQuota: the sandbox has no such quota of {service}; it has {known}")


def _filters(args: Arguments, properties: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    found = [{"Name": one["name"], "Values": list(one["values"])} for one in args.get("filters") or []]
    found += [{"Name": f"tag:{key}", "Values": [value]} for key, value in (args.get("tags") or {}).items()]
    found += [{"Name": key, "Values": [value]} for key, value in (properties or {}).items() if value is not None]
    return found


def _the_one(
    kind: str, cloud: Cloud, region: str, args: Arguments, properties: Mapping[str, Any], ids: str
) -> Mapping[str, Any]:
    operation = {"Vpc": "describe_vpcs", "Subnet": "describe_subnets"}.get(kind, "describe_security_groups")
    parameter = "".join(part.capitalize() for part in ids.split("_"))
    wanted: dict[str, Any] = {"Filters": _filters(args, properties)}
    if args.get("id"):
        wanted[parameter] = [args["id"]]
    rows: list[Any] = list(_rows(cloud.call("ec2", operation, region, **wanted), kind))
    if len(rows) != 1:
        found = "no" if not rows else f"{len(rows)} (be more specific)"
        raise StandInError(f"aws:ec2/get{kind}: {found} {kind} in {region} matches")
    return rows[0]


def _rows(answer: Mapping[str, Any], kind: str) -> Iterable[Any]:
    return answer[f"{kind}s"]


def _needed(token: str, args: Arguments, name: str) -> Any:
    if not args.get(name):
        raise StandInError(f"{token}: {name} is required and not set")
    return args[name]


_ANSWERS: Mapping[str, _Answer] = {
    "aws:ec2/getInstanceType:getInstanceType": _instance_type,
    "aws:ec2/getInstanceTypeOfferings:getInstanceTypeOfferings": _offerings,
    "aws:ec2/getInstanceTypes:getInstanceTypes": _instance_types,
    "aws:ec2/getSecurityGroup:getSecurityGroup": _security_group,
    "aws:ec2/getSubnet:getSubnet": _subnet,
    "aws:ec2/getSubnets:getSubnets": _subnets,
    "aws:ec2/getVpc:getVpc": _vpc,
    "aws:eks/getAddonVersion:getAddonVersion": _addon_version,
    "aws:iam/getPolicyDocument:getPolicyDocument": _policy_document,
    "aws:index/getAvailabilityZones:getAvailabilityZones": _zones,
    "aws:index/getCallerIdentity:getCallerIdentity": _caller,
    "aws:index/getPartition:getPartition": _partition,
    "aws:index/getRegion:getRegion": _region,
    "aws:servicequotas/getServiceQuota:getServiceQuota": _service_quota,
    "aws:ssm/getParameter:getParameter": _parameter,
}
