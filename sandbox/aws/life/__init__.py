"""How the account's resources live: one module for each AWS service, or part of one."""

from collections.abc import Mapping

from sandbox.aws.life import (
    eks,
    eks_access,
    iam,
    instances,
    interfaces,
    keys_and_logs,
    launches,
    node_groups,
    routes,
    security_groups,
    vpc,
)
from sandbox.aws.life.base import Life

LIVES: Mapping[str, Life] = {
    **eks.LIVES,
    **eks_access.LIVES,
    **iam.LIVES,
    **instances.LIVES,
    **interfaces.LIVES,
    **keys_and_logs.LIVES,
    **launches.LIVES,
    **node_groups.LIVES,
    **routes.LIVES,
    **security_groups.LIVES,
    **vpc.LIVES,
}
"""Resource token -> its life."""
