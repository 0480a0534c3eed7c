"""The network the cluster lives in: a VPC of our own over several zones, or an existing one that is checked, not changed."""

from collections.abc import Mapping, Sequence
from typing import NotRequired, TypedDict

import pulumi
import pulumi_aws as aws

from components import PACKAGE
from components.choices import NatGateways
from components.faults import Fault, StackFaults, path, set_to
from components.subnets import MIN_ZONES, ZoneSubnets, plan_subnets, subnet_faults
from components.tags import resource_tags

# What a node and its pods call before and while they work: image layers (S3), images, role credentials, the CNI's and
# the kubelet's EC2 calls, logs. Without the first two every image of every node goes through the NAT gateway.
_INTERFACE_ENDPOINTS = {"ecr-api": "ecr.api", "ecr-dkr": "ecr.dkr", "sts": "sts", "ec2": "ec2", "logs": "logs"}


class NetworkArgs(TypedDict):
    """Either `cidr` and `zones` for a new VPC, or `vpc_id` and `private_subnets` for an existing one."""

    region: str
    """The AWS region, such as us-east-1; endpoint services carry it in their names."""
    cidr: NotRequired[str]
    """IPv4 range of a new VPC, /16 to /20."""
    zones: NotRequired[Sequence[str]]
    """Availability Zones of a new VPC, at least two. Append to the list; a new order would move the subnets."""
    nat_gateways: NotRequired[NatGateways]
    """NAT gateways of a new VPC. Default: single."""
    vpc_id: NotRequired[str]
    """Id of an existing VPC."""
    private_subnets: NotRequired[Mapping[str, str]]
    """Zone -> id of an existing subnet with a way out to the internet, in at least two zones."""
    tags: NotRequired[Mapping[str, str]]
    """Tags added to every taggable resource."""


class Network(pulumi.ComponentResource):
    """A VPC with a private and a public subnet in each zone, NAT and endpoints; or an existing VPC.

    Raises:
        StackFaults: The arguments do not describe one network, or an existing subnet is not where it is said to be.
    """

    vpc_id: pulumi.Output[str]
    private_subnet_ids: dict[str, pulumi.Output[str]]
    """Zone -> subnet id. The zones are known in a preview even where the ids are not."""
    egress: list[pulumi.Resource]
    """What must stand before a node in a private subnet can reach anything, and must outlive it: a subnet's id carries no
    dependency on its routes. Empty for an existing VPC."""

    def __init__(self, name: str, args: NetworkArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        faults = _argument_faults(args)
        if faults:
            raise StackFaults(faults)
        super().__init__(f"{PACKAGE}:index:Network", name, None, opts)
        self._name = name
        self._tags = args.get("tags")
        self._child = pulumi.ResourceOptions(parent=self)
        self.egress = []
        if "vpc_id" in args:
            self._adopt(args["vpc_id"], args.get("private_subnets", {}))
        else:
            zones = args.get("zones", [])
            plan = plan_subnets(args.get("cidr", ""), zones)
            self._create(args.get("cidr", ""), plan, args.get("nat_gateways", NatGateways.SINGLE), args["region"])
        self.register_outputs({"vpc_id": self.vpc_id, "private_subnet_ids": self.private_subnet_ids})

    def _adopt(self, vpc_id: str, private_subnets: Mapping[str, str]) -> None:
        faults: list[Fault] = []
        for zone, subnet_id in private_subnets.items():
            at = path("network", "privateSubnets", zone)
            of_the_vpc = set_to(at, f"<a subnet of {vpc_id} in {zone}>")
            try:
                subnet = aws.ec2.get_subnet(id=subnet_id, opts=pulumi.InvokeOptions(parent=self))
            # The SDK raises a bare Exception for every failed invoke.
            except Exception as error:
                faults.append(Fault(at, f"it cannot be read ({error})", of_the_vpc, subnet_id))
                continue
            if (found := subnet.availability_zone) != zone:
                why = f"it lies in {found}, not in {zone}, and EFA does not cross zones"
                other = set_to(path("network", "privateSubnets", found), subnet_id)
                faults.append(Fault(at, why, f"{of_the_vpc} (or, under its zone: {other})", subnet_id))
            if subnet.vpc_id != vpc_id:
                faults.append(Fault(at, f"it belongs to {subnet.vpc_id}, not to {vpc_id}", of_the_vpc, subnet_id))
        if faults:
            raise StackFaults(faults)
        self.vpc_id = pulumi.Output.from_input(vpc_id)
        self.private_subnet_ids = {zone: pulumi.Output.from_input(value) for zone, value in private_subnets.items()}

    def _create(self, cidr: str, plan: Mapping[str, ZoneSubnets], nat_gateways: NatGateways, region: str) -> None:
        vpc = aws.ec2.Vpc(
            f"{self._name}-vpc",
            cidr_block=cidr,
            enable_dns_support=True,
            enable_dns_hostnames=True,
            tags=self._named("vpc"),
            opts=self._child,
        )
        self.vpc_id = vpc.id
        gateway = aws.ec2.InternetGateway(
            f"{self._name}-internet", vpc_id=vpc.id, tags=self._named("internet"), opts=self._child
        )
        public_routes = self._route_table("public", vpc)
        public_route = aws.ec2.Route(
            f"{self._name}-public-to-internet",
            route_table_id=public_routes.id,
            destination_cidr_block="0.0.0.0/0",
            gateway_id=gateway.id,
            opts=self._child,
        )
        self.egress += [gateway, public_route]
        private_subnets = {zone: self._subnet("private", zone, blocks.private, vpc) for zone, blocks in plan.items()}
        public_subnets = {zone: self._subnet("public", zone, blocks.public, vpc) for zone, blocks in plan.items()}
        self.private_subnet_ids = {zone: subnet.id for zone, subnet in private_subnets.items()}
        for zone, subnet in public_subnets.items():
            self._associate("public", zone, subnet, public_routes)

        first_zone = next(iter(plan))
        nat_zones = list(plan) if nat_gateways is NatGateways.PER_ZONE else [first_zone]
        nats = {zone: self._nat(zone, public_subnets[zone], gateway, public_route) for zone in nat_zones}
        private_routes: list[aws.ec2.RouteTable] = []
        for zone, subnet in private_subnets.items():
            routes = self._route_table(f"private-{zone}", vpc)
            private_routes.append(routes)
            self._associate("private", zone, subnet, routes)
            self.egress.append(
                aws.ec2.Route(
                    f"{self._name}-private-{zone}-to-nat",
                    route_table_id=routes.id,
                    destination_cidr_block="0.0.0.0/0",
                    nat_gateway_id=nats.get(zone, nats[first_zone]).id,
                    opts=self._child,
                )
            )
        self._endpoints(vpc, cidr, region, [subnet.id for subnet in private_subnets.values()], private_routes)

    def _named(self, suffix: str, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        return {**resource_tags(self._tags, name=f"{self._name}-{suffix}"), **(extra or {})}

    def _subnet(self, kind: str, zone: str, cidr: str, vpc: aws.ec2.Vpc) -> aws.ec2.Subnet:
        # Load balancers of Kubernetes Services find their subnets by these tags.
        role = "kubernetes.io/role/internal-elb" if kind == "private" else "kubernetes.io/role/elb"
        return aws.ec2.Subnet(
            f"{self._name}-{kind}-{zone}",
            vpc_id=vpc.id,
            availability_zone=zone,
            cidr_block=cidr,
            map_public_ip_on_launch=False,
            tags=self._named(f"{kind}-{zone}", {role: "1"}),
            opts=self._child,
        )

    def _route_table(self, suffix: str, vpc: aws.ec2.Vpc) -> aws.ec2.RouteTable:
        return aws.ec2.RouteTable(
            f"{self._name}-{suffix}-routes", vpc_id=vpc.id, tags=self._named(f"{suffix}-routes"), opts=self._child
        )

    def _associate(self, kind: str, zone: str, subnet: aws.ec2.Subnet, routes: aws.ec2.RouteTable) -> None:
        self.egress.append(
            aws.ec2.RouteTableAssociation(
                f"{self._name}-{kind}-{zone}", subnet_id=subnet.id, route_table_id=routes.id, opts=self._child
            )
        )

    def _nat(
        self, zone: str, subnet: aws.ec2.Subnet, gateway: aws.ec2.InternetGateway, public_route: aws.ec2.Route
    ) -> aws.ec2.NatGateway:
        # A NAT gateway works only where its subnet has a route out, and an address can be released only after it.
        behind_gateway = pulumi.ResourceOptions(parent=self, depends_on=[gateway, public_route])
        address = aws.ec2.Eip(
            f"{self._name}-nat-{zone}", domain="vpc", tags=self._named(f"nat-{zone}"), opts=behind_gateway
        )
        nat = aws.ec2.NatGateway(
            f"{self._name}-nat-{zone}",
            allocation_id=address.id,
            subnet_id=subnet.id,
            tags=self._named(f"nat-{zone}"),
            opts=behind_gateway,
        )
        self.egress.append(nat)
        return nat

    def _endpoints(
        self,
        vpc: aws.ec2.Vpc,
        cidr: str,
        region: str,
        subnet_ids: Sequence[pulumi.Output[str]],
        routes: Sequence[aws.ec2.RouteTable],
    ) -> None:
        group = aws.ec2.SecurityGroup(
            f"{self._name}-endpoints",
            vpc_id=vpc.id,
            description="AWS API endpoints of the VPC",
            tags=self._named("endpoints"),
            opts=self._child,
        )
        https = aws.vpc.SecurityGroupIngressRule(
            f"{self._name}-endpoints-https",
            security_group_id=group.id,
            description="HTTPS from the VPC",
            cidr_ipv4=cidr,
            ip_protocol="tcp",
            from_port=443,
            to_port=443,
            tags=self._named("endpoints-https"),
            opts=self._child,
        )
        s3 = aws.ec2.VpcEndpoint(
            f"{self._name}-s3",
            vpc_id=vpc.id,
            service_name=f"com.amazonaws.{region}.s3",
            vpc_endpoint_type="Gateway",
            route_table_ids=[table.id for table in routes],
            tags=self._named("s3"),
            opts=self._child,
        )
        self.egress += [https, s3]
        for suffix, service in _INTERFACE_ENDPOINTS.items():
            self.egress.append(
                aws.ec2.VpcEndpoint(
                    f"{self._name}-{suffix}",
                    vpc_id=vpc.id,
                    service_name=f"com.amazonaws.{region}.{service}",
                    vpc_endpoint_type="Interface",
                    private_dns_enabled=True,
                    subnet_ids=subnet_ids,
                    security_group_ids=[group.id],
                    tags=self._named(suffix),
                    opts=self._child,
                )
            )


def _argument_faults(args: NetworkArgs) -> list[str]:
    if "vpc_id" not in args:
        if "private_subnets" in args:
            return ["network.privateSubnets: subnets are given without their VPC; write network.vpcId too."]
        return subnet_faults(args.get("cidr", ""), args.get("zones", []))
    faults: list[str] = []
    if "cidr" in args or "zones" in args:
        faults.append(
            "network.vpcId: an existing VPC has its own cidr and zones; remove network.cidr and network.zones."
        )
    subnets = args.get("private_subnets", {})
    if len(subnets) < MIN_ZONES:
        faults.append(
            f"network.privateSubnets: {len(subnets)} zone(s) given; the EKS control plane needs at least {MIN_ZONES}: write "
            "{us-east-1a: subnet-..., us-east-1b: subnet-...}. The GPU nodes still use one only."
        )
    return faults
