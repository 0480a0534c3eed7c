import pytest

from components.images import REGISTRY_ACCOUNTS, default_image, unpinned, wrong_registry


@pytest.mark.parametrize(
    ("region", "image"),
    [
        ("us-east-1", "763104351884.dkr.ecr.us-east-1.amazonaws.com/ray:serve-llm-cuda-v1.0"),
        ("eu-north-1", "763104351884.dkr.ecr.eu-north-1.amazonaws.com/ray:serve-llm-cuda-v1.0"),
        ("af-south-1", "626614931356.dkr.ecr.af-south-1.amazonaws.com/ray:serve-llm-cuda-v1.0"),
        ("ap-east-1", "871362719292.dkr.ecr.ap-east-1.amazonaws.com/ray:serve-llm-cuda-v1.0"),
        ("me-south-1", "217643126080.dkr.ecr.me-south-1.amazonaws.com/ray:serve-llm-cuda-v1.0"),
        ("cn-north-1", "727897471807.dkr.ecr.cn-north-1.amazonaws.com.cn/ray:serve-llm-cuda-v1.0"),
        ("us-gov-west-1", None),
    ],
)
def test_the_image_is_in_the_account_of_the_region(region: str, image: str | None) -> None:
    assert default_image(region) == image


@pytest.mark.parametrize("region", REGISTRY_ACCOUNTS)
def test_every_default_image_is_pinned_and_its_region_may_pull_it(region: str) -> None:
    image = default_image(region)

    assert image is not None
    assert (unpinned(image), wrong_registry(image, region)) == (None, None)


def test_a_port_is_no_tag() -> None:
    assert unpinned("localhost:5000/ray") == "it has neither a tag nor a digest, so each pull takes whatever is newest"


def test_a_digest_pins_whatever_the_tag() -> None:
    assert unpinned("ray:latest@sha256:" + "a" * 64) is None


def test_an_account_of_ones_own_may_lie_in_another_region() -> None:
    assert wrong_registry("123456789012.dkr.ecr.eu-west-1.amazonaws.com/ray:1", "us-east-1") is None


def test_a_region_without_a_registry_of_its_own_cannot_pull_from_anothers() -> None:
    assert wrong_registry("763104351884.dkr.ecr.us-east-1.amazonaws.com/ray:1", "us-gov-west-1") == (
        "it is account 763104351884 in us-east-1; for us-gov-west-1 AWS names no account"
    )
