"""One module per AWS service: how its resource types behave beyond the SDK's schema."""

from collections.abc import Mapping

from sandbox.aws.kinds import ResourceKind
from sandbox.aws.services import autoscaling, cloudwatch, ec2, eks, iam, kms, vpc

KINDS: Mapping[str, ResourceKind] = {
    **autoscaling.KINDS,
    **cloudwatch.KINDS,
    **ec2.KINDS,
    **eks.KINDS,
    **iam.KINDS,
    **kms.KINDS,
    **vpc.KINDS,
}
"""Resource token -> what is known of it. The SDK's schema alone judges every other type."""
