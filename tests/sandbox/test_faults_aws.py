"""What the simulated account says and leaves behind when a run asks for a fault."""

import re

import pytest

from sandbox.calls import CURRENT, Call
from sandbox.standin import InitFailed, StandInError
from tests.sandbox.aws_stack import GROUP, NODES, ROLE, TAGS, VPC, Stack


@pytest.fixture
def stack() -> Stack:
    """Everything but the node group."""
    stack = Stack()
    stack.network()
    stack.cluster()
    stack.nodes()
    stack.delete("gpu")
    return stack


def struck(stack: Stack, *faults: str) -> Stack:
    account = stack.aws.cloud
    stack.open(faults)
    stack.aws = type(stack.aws)(faults=stack.aws._lifecycle._faults, cloud=account)
    stack.aws.configure({"region": "us-east-1"})
    return stack


def said(refusal: StandInError) -> str:
    return re.sub(r"RequestID: [0-9a-f-]{36}", "RequestID: ...", str(refusal)).strip()


def left(stack: Stack) -> list[str]:
    return sorted(one.kind for one in stack.aws.inventory() if one.kind in ("eks:nodegroup", "ec2:instance"))


def failed(stack: Stack) -> str:
    with pytest.raises(InitFailed) as failure:
        stack.make(NODES, "gpu", stack.node_inputs())
    return failure.value.reasons[0].partition("last error: ")[2].strip().partition(": ")[2]


@pytest.mark.parametrize(
    ("fault", "expected", "instances"),
    [
        (
            "insufficient-capacity",
            "AsgInstanceLaunchFailures: Could not launch On-Demand Instances. InsufficientInstanceCapacity - We currently do "
            "not have sufficient g6.8xlarge capacity in the Availability Zone you requested. Our system will be working on "
            "provisioning additional capacity. Launching EC2 instance failed.",
            0,
        ),
        (
            "quota-exceeded",
            "AsgInstanceLaunchFailures: Could not launch On-Demand Instances. VcpuLimitExceeded - You have requested more "
            "vCPU capacity than your current vCPU limit of 0 allows for the instance bucket that the specified instance type "
            "belongs to. Please visit http://aws.amazon.com/contact-us/ec2-request to request an adjustment to this limit. "
            "Launching EC2 instance failed.",
            0,
        ),
        (
            "reservation-expired",
            "AsgInstanceLaunchFailures: Could not launch On-Demand Instances. ReservationCapacityExceeded - The requested "
            "reservation does not have sufficient compatible and available capacity for this request. "
            "Launching EC2 instance failed.",
            0,
        ),
        ("node-creation-failure", "NodeCreationFailure: Instances failed to join the kubernetes cluster", 2),
    ],
)
def test_a_failed_node_group_exists(stack: Stack, fault: str, expected: str, instances: int) -> None:
    struck(stack, fault)

    assert failed(stack) == expected
    assert left(stack) == ["ec2:instance"] * instances + ["eks:nodegroup"]


def test_a_failed_node_group_is_in_the_state_as_it_was_asked_for(stack: Stack) -> None:
    struck(stack, "insufficient-capacity")

    with pytest.raises(InitFailed) as failure:
        stack.make(NODES, "gpu", stack.node_inputs())

    name = failure.value.inputs["nodeGroupName"]
    assert failure.value.id == f"llm:{name}"
    assert failure.value.outputs["nodeGroupName"] == name
    assert "status" not in failure.value.outputs
    assert failure.value.reasons[0].startswith(
        f"creating urn:pulumi:dev::p::{NODES}::gpu: 1 error occurred:\n\t* waiting"
    )


def test_an_empty_update_leaves_a_failed_node_group_as_it_is(stack: Stack) -> None:
    struck(stack, "insufficient-capacity")
    failed(stack)

    assert stack.update("gpu")["status"] == "CREATE_FAILED"
    assert left(stack) == ["eks:nodegroup"]


def test_a_failed_node_group_takes_no_update(stack: Stack) -> None:
    struck(stack, "insufficient-capacity")
    failed(stack)

    with pytest.raises(StandInError) as refusal:
        stack.update("gpu", labels={"a": "b"})
    assert said(refusal.value).endswith(
        "ResourceInUseException: Nodegroup cannot be updated as it is currently not in Active State"
    )


def test_a_failed_node_group_made_again_is_as_if_nothing_had_been(stack: Stack) -> None:
    struck(stack, "node-creation-failure")
    failed(stack)
    stack.delete("gpu")
    stack.make(NODES, "gpu", stack.node_inputs())

    assert left(stack) == ["ec2:instance", "ec2:instance", "eks:nodegroup"]


def test_the_wait_ends_at_the_programs_own_time_and_eks_goes_on(stack: Stack) -> None:
    struck(stack, "time-out")
    token = CURRENT.set(Call(timeout_seconds=2400))
    try:
        with pytest.raises(InitFailed) as failure:
            stack.make(NODES, "gpu", stack.node_inputs())
    finally:
        CURRENT.reset(token)

    assert (
        failure.value.reasons[0]
        .strip()
        .endswith(
            f"waiting for EKS Node Group ({failure.value.id}) create: timeout while waiting for state to become 'ACTIVE' "
            "(last state: 'CREATING', timeout: 40m0s)"
        )
    )
    assert stack.update("gpu")["status"] == "ACTIVE"
    assert left(stack) == ["ec2:instance", "ec2:instance", "eks:nodegroup"]


def test_a_throttled_call_makes_nothing() -> None:
    stack = Stack(faults=("throttling",))

    with pytest.raises(StandInError) as refusal:
        stack.make(VPC, "vpc", {"cidrBlock": "10.9.0.0/16", "tags": TAGS})

    assert said(refusal.value) == (
        "1 error occurred:\n\t* creating EC2 VPC: operation error EC2: CreateVpc, exceeded maximum number of attempts, 25, "
        "https response error StatusCode: 503, RequestID: ..., api error RequestLimitExceeded: Request limit exceeded."
    )
    assert stack.aws.inventory() == []
    stack.make(VPC, "vpc", {"cidrBlock": "10.9.0.0/16", "tags": TAGS})


def test_what_is_denied_names_user_and_action() -> None:
    stack = Stack(faults=("access-denied@node",))

    with pytest.raises(StandInError) as refusal:
        stack.make(ROLE, "node", {"name": "node", "assumeRolePolicy": "{}"})

    assert said(refusal.value) == (
        "1 error occurred:\n\t* creating IAM Role (node): operation error IAM: CreateRole, https response error StatusCode: "
        "403, RequestID: ..., AccessDenied: User: arn:aws:iam::123456789012:user/sandbox is not authorized to perform: "
        "iam:CreateRole because no identity-based policy allows the iam:CreateRole action"
    )


def test_a_quota_aimed_at_a_vpc_is_the_vpcs() -> None:
    stack = Stack(faults=("quota-exceeded@vpc",))

    with pytest.raises(StandInError, match=r"VpcLimitExceeded: The maximum number of VPCs has been reached\."):
        stack.make(VPC, "vpc", {"cidrBlock": "10.9.0.0/16"})


def test_a_security_group_with_a_leftover_interface_stays_once(stack: Stack) -> None:
    struck(stack, "dependency-violation")
    group = stack.id("efa")

    with pytest.raises(StandInError) as refusal:
        stack.delete("efa")

    assert said(refusal.value) == (
        f"1 error occurred:\n\t* deleting Security Group ({group}): operation error EC2: DeleteSecurityGroup, https response "
        f"error StatusCode: 400, RequestID: ..., api error DependencyViolation: resource {group} has a dependent object"
    )
    stack.delete("efa")
    assert GROUP not in {one.made_by for one in stack.aws.inventory()}


def test_an_expired_reservation_is_not_found(stack: Stack) -> None:
    struck(stack, "reservation-expired@reserved")
    token, id = "aws:ec2/capacityReservation:CapacityReservation", "cr-0123456789abcdef0"
    stack.made["reserved"] = (token, id, {}, {})

    assert stack.read("reserved") is None
    found = stack.read("reserved")
    assert found is not None
    assert found[1]["instanceType"] == "g6e.12xlarge"
