"""The tags every taggable AWS resource of the stack carries."""

from collections.abc import Mapping

import pulumi

from components import PACKAGE

CLUSTER_TAG_PREFIX = "kubernetes.io/cluster/"


def resource_tags(user_tags: Mapping[str, str] | None = None, *, name: str | None = None) -> dict[str, str]:
    """The user's tags under the required ones: what belongs to a stack must be findable by tag, whatever a user sets.

    Args:
        user_tags: Tags from the stack's configuration.
        name: The ``Name`` tag, which the EC2 console shows; left out where it is None.
    """
    named = {"Name": name} if name else {}
    required = {"Project": PACKAGE, "Stack": pulumi.get_stack(), "ManagedBy": "pulumi"}
    return {**named, **(user_tags or {}), **required}


def without_cluster_ownership(tags: Mapping[str, str]) -> dict[str, str]:
    """The tags without ``kubernetes.io/cluster/*``, for a security group beside the cluster's own.

    The AWS load balancer controller expects exactly one group with that tag on an interface and refuses the target when
    it finds two (eksctl-io/eksctl#8475).
    """
    return {key: value for key, value in tags.items() if not key.startswith(CLUSTER_TAG_PREFIX)}
