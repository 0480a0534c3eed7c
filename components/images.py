"""Where AWS's Ray Serve LLM image is pulled from, region by region, and whether an image reference is pinned.

Account ids: aws/deep-learning-containers, docs/reference/region_availability.md. Regions that were there before
opt-in regions share one account; every opt-in region has its own.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

REPOSITORY: Final = "ray"
TAG: Final = "serve-llm-cuda-v1.0"
"""The tag AWS's ``ray-serve-multi-node`` sample deploys."""

_SHARED_ACCOUNT: Final = "763104351884"
_SHARED_REGIONS: Final = (
    "ap-northeast-1",
    "ap-northeast-2",
    "ap-south-1",
    "ap-southeast-1",
    "ap-southeast-2",
    "ca-central-1",
    "eu-central-1",
    "eu-north-1",
    "eu-west-1",
    "eu-west-2",
    "eu-west-3",
    "sa-east-1",
    "us-east-1",
    "us-east-2",
    "us-west-1",
    "us-west-2",
)

REGISTRY_ACCOUNTS: Final[Mapping[str, str]] = MappingProxyType(
    dict.fromkeys(_SHARED_REGIONS, _SHARED_ACCOUNT)
    | {
        "af-south-1": "626614931356",
        "ap-east-1": "871362719292",
        "ap-east-2": "975050140332",
        "ap-northeast-3": "364406365360",
        "ap-south-2": "772153158452",
        "ap-southeast-3": "907027046896",
        "ap-southeast-4": "457447274322",
        "ap-southeast-5": "550225433462",
        "ap-southeast-6": "633930458069",
        "ap-southeast-7": "590183813437",
        "ca-west-1": "204538143572",
        "cn-north-1": "727897471807",
        "cn-northwest-1": "727897471807",
        "eu-central-2": "380420809688",
        "eu-south-1": "692866216735",
        "eu-south-2": "503227376785",
        "il-central-1": "780543022126",
        "me-central-1": "914824155844",
        "me-south-1": "217643126080",
        "mx-central-1": "637423239942",
    }
)
"""Region -> the account that holds AWS Deep Learning Containers there."""

_ECR_HOST = re.compile(r"(?P<account>\d{12})\.dkr\.ecr\.(?P<region>[a-z0-9-]+)\.amazonaws\.com(\.cn)?")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")


def default_image(region: str) -> str | None:
    """AWS's image in the region's own registry, or None where AWS names no registry for the region."""
    account = REGISTRY_ACCOUNTS.get(region)
    if account is None:
        return None
    suffix = ".cn" if region.startswith("cn-") else ""
    return f"{account}.dkr.ecr.{region}.amazonaws.com{suffix}/{REPOSITORY}:{TAG}"


def unpinned(image: str) -> str | None:
    """Why two pulls of this reference may give two images, or None where it names one.

    A digest always pins; a tag pins by agreement, ``latest`` never does.
    """
    name, _, digest = image.partition("@")
    if digest:
        return None if _DIGEST.fullmatch(digest) else "its digest is not sha256: and 64 hexadecimal digits"
    tag = name.rpartition("/")[2].partition(":")[2]
    if not tag:
        return "it has neither a tag nor a digest, so each pull takes whatever is newest"
    if tag == "latest":
        return "the tag latest moves: two nodes may run two versions, and prefill and decode must match"
    return None if _TAG.fullmatch(tag) else "its tag has characters no registry allows"


def wrong_registry(image: str, region: str) -> str | None:
    """Why nodes of this region cannot pull an AWS Deep Learning Containers image, or None.

    Registries of other accounts are their owner's business and are not judged.
    """
    host = _ECR_HOST.fullmatch(image.partition("/")[0])
    if host is None or host["account"] not in REGISTRY_ACCOUNTS.values():
        return None
    expected = REGISTRY_ACCOUNTS.get(region)
    if host["region"] == region and host["account"] == expected:
        return None
    holder = f"account {expected}" if expected else "no account"
    return f"it is account {host['account']} in {host['region']}; for {region} AWS names {holder}"
