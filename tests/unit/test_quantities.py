import pytest

from components.quantities import mebibytes, millicpus, release
from tests.unit.stack_files import faults


@pytest.mark.parametrize(("quantity", "expected"), [("96Gi", 98304), ("512Mi", 512)])
def test_memory_in_mib(quantity: str, expected: int) -> None:
    assert mebibytes(quantity) == expected


@pytest.mark.parametrize("quantity", ["96", "96G", "96GB", "1.5Gi", ""])
def test_memory_without_a_binary_unit_is_refused(quantity: str) -> None:
    with pytest.raises(ValueError, match="not a memory quantity in Mi or Gi"):
        mebibytes(quantity)


@pytest.mark.parametrize(("quantity", "expected"), [("2", 2000), ("500m", 500)])
def test_cpu_in_thousandths(quantity: str, expected: int) -> None:
    assert millicpus(quantity) == expected


def test_cpu_of_another_spelling_is_refused() -> None:
    with pytest.raises(ValueError, match="not a CPU quantity"):
        millicpus("half")


def test_releases_compare_as_numbers() -> None:
    assert release("v1.10.0-rc.1") == (1, 10, 0)
    assert release("1.6.0") < release("1.10.0")


def test_a_quantity_longer_than_a_number_can_be_read_is_a_fault_like_any_other() -> None:
    [fault] = faults(service__worker__memory="9" * 5000 + "Gi")

    assert fault.startswith('ray-llm-eks:service.worker.memory is "9999')
    assert fault.endswith(
        "9...: it must be a memory quantity with its unit, such as 96Gi or 512Mi. Type: pulumi config set --path "
        "'ray-llm-eks:service.worker.memory' 96Gi"
    )
