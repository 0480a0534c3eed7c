"""The closed sets of the configuration: one name for each choice, shared by settings and component arguments."""

from enum import StrEnum


class NatGateways(StrEnum):
    """How many NAT gateways a new network gets."""

    SINGLE = "single"
    """One for all zones: cheaper, and its zone's failure cuts every node off the internet."""
    PER_ZONE = "perZone"
    """One in each zone."""


class CapacityKind(StrEnum):
    """Where the GPU instances come from; everything EC2 and EKS need to know follows from it."""

    ON_DEMAND = "onDemand"
    RESERVATION = "reservation"
    """An on-demand capacity reservation: capacity type ON_DEMAND, its id in the launch template."""
    CAPACITY_BLOCK = "capacityBlock"
    """A capacity block for ML: capacity type CAPACITY_BLOCK, market type capacity-block and its id, all three."""

    def contradiction(self, reservation_id: str | None) -> str | None:
        """Why this kind and a reservation's id do not go together, or None where they do."""
        if self is CapacityKind.ON_DEMAND:
            return "capacity.kind is onDemand, which uses no reservation" if reservation_id else None
        return None if reservation_id else f"capacity.kind is {self}, which needs its id"


class UpgradeStrategy(StrEnum):
    """What KubeRay does when the RayCluster inside a RayService changes."""

    NONE = "None"
    """Nothing: the RayService is replaced instead. The only way on a pool that holds the workers once."""
    NEW_CLUSTER = "NewCluster"
    """A second, full RayCluster beside the old one: the pool must hold all workers twice."""


class Dtype(StrEnum):
    """The number format of weights and KV cache that vLLM is asked for."""

    BFLOAT16 = "bfloat16"
    FLOAT16 = "float16"
    FLOAT32 = "float32"
