"""What exists in the sandbox's account before any stack: the one place to look when a stack must name such a thing.

``Pulumi.prod.yaml`` names :data:`RESERVATIONS`; a stack that brings its own network may name :data:`EXISTING_NETWORK`.
"""

from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

ACCOUNT_ID: Final = "123456789012"
"""The account of AWS's own documentation, which moto uses as well."""

SEED: Final = 20_260
"""Seeds moto's random numbers, so that the ids below come out the same in each process (moto 5.2.5)."""


@dataclass(frozen=True)
class Reservation:
    """An on-demand capacity reservation of EC2."""

    id: str
    instance_type: str
    zone: str
    instance_count: int

    @property
    def region(self) -> str:
        """The zone without its letter."""
        return self.zone[:-1]


RESERVATIONS: Final = MappingProxyType(
    {one.id: one for one in (Reservation("cr-0123456789abcdef0", "g6e.12xlarge", "us-east-1a", 3),)}
)


@dataclass(frozen=True)
class ExistingNetwork:
    """A VPC with one private subnet a zone, all tagged ``Name``."""

    region: str
    vpc_id: str
    cidr: str
    subnet_cidrs: MappingProxyType[str, str]
    subnet_ids: MappingProxyType[str, str]


EXISTING_NETWORK: Final = ExistingNetwork(
    region="us-east-1",
    vpc_id="vpc-aeb16ac0132cb3915",
    cidr="10.60.0.0/16",
    subnet_cidrs=MappingProxyType({"us-east-1a": "10.60.0.0/18", "us-east-1b": "10.60.64.0/18"}),
    subnet_ids=MappingProxyType({"us-east-1a": "subnet-380befc5ec0c99099", "us-east-1b": "subnet-c9bc97267d43bb1bc"}),
)

QUOTAS: Final = MappingProxyType(
    {
        ("ec2", "L-DB2E81BA"): ("Running On-Demand G and VT instances", 256.0),
        ("ec2", "L-417A185B"): ("Running On-Demand P instances", 192.0),
        ("ec2", "L-3819A6DF"): ("All G and VT Spot Instance Requests", 256.0),
        ("ec2", "L-1216C47A"): ("Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances", 1152.0),
    }
)
"""(service, quota code) -> name and vCPU. Names: Service Quotas; values: made up, a real new account has 0 for G and P."""

ADDON_VERSIONS: Final = MappingProxyType(
    {
        "vpc-cni": "v1.20.0-eksbuild.1",
        "coredns": "v1.12.1-eksbuild.2",
        "kube-proxy": "v{kubernetes}.0-eksbuild.1",
        "aws-ebs-csi-driver": "v1.48.0-eksbuild.1",
        "eks-pod-identity-agent": "v1.3.8-eksbuild.2",
    }
)
"""Answers of ``eks.getAddonVersion``, of the right form only: moto knows no add-ons and AWS's newest change weekly."""
