"""What AWS refuses, worded as pulumi-aws prints it."""

import uuid

from sandbox.standin import StandInError

# aws-sdk-go-v2 prints a modelled exception as "Code: message" and any other as "api error Code: message"
# (smithy-go GenericAPIError); EC2's model has no exceptions.
_UNMODELLED = frozenset({"EC2"})
_SERVICE_IDS = {
    "autoscaling": "Auto Scaling",
    "ec2": "EC2",
    "eks": "EKS",
    "iam": "IAM",
    "kms": "KMS",
    "logs": "CloudWatch Logs",
    "ssm": "SSM",
    "servicequotas": "Service Quotas",
    "sts": "STS",
}
_MODELLED_NAMES = {
    # IAM's query protocol leaves "Exception" out of the code (iam/2010-05-08 service model).
    "DeleteConflict": "DeleteConflict",
    "EntityAlreadyExists": "EntityAlreadyExists",
    "NoSuchEntity": "NoSuchEntity",
}


class AwsError(StandInError):
    """A call that AWS refused.

    Attributes:
        code: AWS's error code, such as ``DependencyViolation``.
        reason: AWS's message.
    """

    def __init__(self, service: str, action: str, code: str, reason: str, status: int = 400) -> None:
        self.code, self.reason = code, reason
        name = _SERVICE_IDS.get(service, service)
        shown = f"api error {code}" if name in _UNMODELLED else _MODELLED_NAMES.get(code, code)
        super().__init__(
            f"operation error {name}: {action}, https response error StatusCode: {status}, "
            f"RequestID: {uuid.uuid4()}, {shown}: {reason}"
        )
