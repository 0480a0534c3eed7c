import pulumi
import pytest

from components.faults import Fault, StackFaults, faults_end_the_program, path, remove


@pytest.fixture(autouse=True)
def _stack(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulumi, "get_stack", lambda: "dev")


@pytest.fixture
def errors(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    told: list[str] = []
    monkeypatch.setattr(pulumi.log, "error", told.append)
    return told


def test_a_component_that_refuses_ends_the_program_with_one_error(errors: list[str]) -> None:
    at = path("gpuNodes", "capacity", "reservationId")

    with pytest.raises(SystemExit) as ended, faults_end_the_program():
        raise StackFaults([Fault(at, "it is not wanted", remove(at), "cr-1"), "decode.replicas is 0: write 1 to 64"])

    assert ended.value.code == 32
    assert errors == [
        "The configuration of stack dev has 2 faults:\n"
        '  - ray-llm-eks:gpuNodes.capacity.reservationId is "cr-1": it is not wanted. Type: pulumi config rm --path '
        "'ray-llm-eks:gpuNodes.capacity.reservationId'\n"
        "  - decode.replicas is 0: write 1 to 64"
    ]


def test_any_other_error_passes(errors: list[str]) -> None:
    with pytest.raises(ZeroDivisionError), faults_end_the_program():
        raise ZeroDivisionError

    assert errors == []
