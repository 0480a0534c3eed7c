"""EC2 Auto Scaling: groups of nodes that EKS does not manage."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from sandbox.aws.kinds import ResourceKind, RuleContext
from sandbox.aws.rules import conflicts, exactly_one_of, zone_exists
from sandbox.standin import CheckFailure


def _sizes_are_ordered(context: RuleContext) -> Iterable[CheckFailure]:
    # CreateAutoScalingGroup: ValidationError.
    smallest, largest = context.inputs.get("minSize"), context.inputs.get("maxSize")
    if isinstance(smallest, int) and isinstance(largest, int) and smallest > largest:
        yield CheckFailure("minSize", f"is {smallest}, above maxSize {largest}")


KINDS: Mapping[str, ResourceKind] = {
    "aws:autoscaling/group:Group": ResourceKind(
        source="internal/service/autoscaling/group.go",
        replaces=frozenset({"initialLifecycleHooks", "name", "namePrefix"}),
        sets=frozenset(
            {
                *(
                    "availabilityZones",
                    "enabledMetrics",
                    "initialLifecycleHooks",
                    "loadBalancers",
                    "suspendedProcesses",
                ),
                *("tags", "targetGroupArns", "trafficSources", "vpcZoneIdentifiers"),
            }
        ),
        nested_computed=frozenset({"launchTemplate.id", "launchTemplate.name", "launchTemplate.version"}),
        defaults=MappingProxyType(
            {
                "forceDelete": False,
                "forceDeleteWarmPool": False,
                "healthCheckGracePeriod": 300,
                "ignoreFailedScalingActivities": False,
                "protectFromScaleIn": False,
                "waitForCapacityTimeout": "10m",
            }
        ),
        rules=(
            conflicts("name", "namePrefix"),
            conflicts("availabilityZones", "vpcZoneIdentifiers"),
            exactly_one_of("launchTemplate", "launchConfiguration", "mixedInstancesPolicy"),
            zone_exists("availabilityZones[]"),
            _sizes_are_ordered,
        ),
    ),
}
