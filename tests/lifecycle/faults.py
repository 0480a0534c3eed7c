"""The faults that AWS has in store: the rows of docs/faults.md, each met by a test."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Fault:
    """One row.

    Attributes:
        option: What ``--fault`` takes, as the test gives it.
        meaning: What happens on AWS.
        says: What the user reads, as parts of the engine's output.
        says_in_words: The same for the table.
        next_step: What to do.
        stack: The stack that meets it.
        command: ``up`` or ``destroy``.
    """

    option: str
    meaning: str
    says: Sequence[str]
    says_in_words: str
    next_step: str
    stack: str = "dev"
    command: str = "up"

    @property
    def kind(self) -> str:
        """The kind alone."""
        return self.option.partition("@")[0]


FAULTS: Final[Sequence[Fault]] = (
    Fault(
        option="throttling@ray-llm-network-internet",
        meaning="too many calls in the account, and 25 retries did not help",
        says=["RequestLimitExceeded: Request limit exceeded.", "exceeded maximum number of attempts, 25"],
        says_in_words="`RequestLimitExceeded` or `ThrottlingException: Rate exceeded`",
        next_step="nothing is wrong with the stack: wait some minutes, `pulumi up` again, with `--parallel 8` if it comes back",
    ),
    Fault(
        option="access-denied@ray-llm-cluster-secrets",
        meaning="the credentials lack a permission",
        says=["AccessDeniedException", "is not authorized to perform: kms:CreateKey"],
        says_in_words="`AccessDenied` or `UnauthorizedOperation`, with the action",
        next_step="let the role that runs Pulumi do the action that is named, then `pulumi up`",
    ),
    Fault(
        option="quota-exceeded",
        meaning="the account's vCPU limit for this kind of instance",
        says=["VcpuLimitExceeded", "You have requested more vCPU capacity than your current vCPU limit"],
        says_in_words="`AsgInstanceLaunchFailures ... VcpuLimitExceeded`",
        next_step="ask for a [higher quota](#a-higher-quota), then `pulumi up`",
    ),
    Fault(
        option="insufficient-capacity",
        meaning="the zone has none of these instances now",
        says=[
            "AsgInstanceLaunchFailures",
            "InsufficientInstanceCapacity",
            "We currently do not have sufficient g6.8xlarge capacity",
        ],
        says_in_words="`AsgInstanceLaunchFailures ... InsufficientInstanceCapacity`, after a long wait",
        next_step="`pulumi up` later, or [another zone](#another-zone-for-the-gpu-nodes), or buy a reservation",
    ),
    Fault(
        option="reservation-expired",
        meaning="the capacity reservation ended between preview and launch",
        says=["AsgInstanceLaunchFailures", "ReservationCapacityExceeded"],
        says_in_words="`AsgInstanceLaunchFailures ... ReservationCapacityExceeded`; before a preview, that it is not found",
        next_step="buy another one, write its id to `gpuNodes.capacity.reservationId` (or set `kind: onDemand`), "
        "then `pulumi up`",
        stack="prod",
    ),
    Fault(
        option="node-creation-failure",
        meaning="instances run and do not become nodes: no way out, a policy missing, a broken boot",
        says=["CREATE_FAILED", "NodeCreationFailure: Instances failed to join the kubernetes cluster"],
        says_in_words="`NodeCreationFailure: Instances failed to join the kubernetes cluster`, after 15 to 30 minutes",
        next_step="in a network of your own check that the subnet has a route out; read the instance's console output (`aws ec2 "
        "get-console-output`); then `pulumi up`",
    ),
    Fault(
        option="time-out",
        meaning="AWS takes longer than `createTimeoutMinutes`; it goes on without Pulumi",
        says=["timeout while waiting for state to become 'ACTIVE' (last state: 'CREATING', timeout: 40m0s)"],
        says_in_words="`timeout while waiting for state to become 'ACTIVE'`",
        next_step="`pulumi up` again; raise `gpuNodes.createTimeoutMinutes` if it comes back",
    ),
    Fault(
        option="dependency-violation@ray-llm-gpu-efa",
        meaning="something that Pulumi does not know still uses a security group, a subnet or the VPC",
        says=["DependencyViolation", "has a dependent object"],
        says_in_words="`DependencyViolation: resource sg-... has a dependent object`",
        next_step="[delete the leftover interface](#a-destroy-that-hangs-on-a-security-group), then `pulumi destroy`",
        command="destroy",
    ),
)
