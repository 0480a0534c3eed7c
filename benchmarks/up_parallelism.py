"""Is `up` as parallel as its graph allows? ``python -m benchmarks.up_parallelism`` (``make bench``).

One real ``up`` of the dev stack on the sandbox, in which each creation lasts as long as on AWS, scaled down
(:mod:`benchmarks.durations`). Three figures come out of that one run:

- the makespan, from the first creation to the last, by the engine's own events;
- the critical path, from the durations that those events show and the dependencies in the stack's state;
- the stages of AWS's sample one after another, each as parallel inside as it can be.

Exit code 1 when the makespan is more than :data:`ALLOWED` times the critical path.
"""

import json
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from benchmarks import critical_path, durations
from sandbox import cli
from sandbox.engine import CHECKOUT, Sandbox
from sandbox.standin import ResourceRef

STACK: Final = "dev"
SCALE: Final = 1 / 16
"""Seconds of the run per second on AWS: the critical path of about 20 minutes takes 75 s."""
ALLOWED: Final = 1.05

# By the component a resource belongs to, and within the add-ons by what it is.
_STAGES: Final = {
    "ray-llm-network": "network, cluster and system nodes",
    "ray-llm-cluster": "network, cluster and system nodes",
    "ray-llm-gpu": "GPU nodes",
    "ray-llm-addons-device-plugins": "device plugins",
    "ray-llm-addons-nvidia-device-plugin": "device plugins",
    "ray-llm-addons-efa-device-plugin": "device plugins",
    "ray-llm-addons": "operator",
    "ray-llm-service": "service",
}
_POLL_SECONDS: Final = 0.01


@dataclass(frozen=True)
class Measurement:
    """What one run showed, in its own (scaled) seconds."""

    makespan: float
    path: critical_path.Path
    idle: Sequence[float]
    """Seconds between the end of each link's predecessor in the path and its own start; the first link's is 0."""
    stages: Mapping[str, float]

    @property
    def ratio(self) -> float:
        """Makespan over critical path: 1 is as parallel as the graph allows."""
        return self.makespan / self.path.seconds

    @property
    def factor(self) -> float:
        """How many times longer the sample's stages take one after another."""
        return sum(self.stages.values()) / self.makespan


def stage_of(urn: str) -> str:
    """The stage of AWS's sample in which a resource of this project would be made."""
    name = urn.rpartition("::")[2]
    prefix = max((one for one in _STAGES if name.startswith(one)), key=len, default="")
    # What belongs to no component is the program's own provider or the stack.
    return _STAGES.get(prefix, "network, cluster and system nodes")


def measure(events: Sequence[tuple[float, Mapping[str, Any]]], state: Mapping[str, Any]) -> Measurement:
    """The three figures of one run, from its events with their arrival times and the state it left."""
    made = critical_path.spans(events)
    seconds = {urn: span.seconds for urn, span in made.items()}
    needs = critical_path.waits(state)
    path = critical_path.longest(seconds, needs)
    stages = critical_path.one_after_another(seconds, needs, stage_of)
    return Measurement(
        makespan=max(span.end for span in made.values()) - min(span.start for span in made.values()),
        path=path,
        idle=[0.0, *(made[after].start - made[before].end for before, after in pairwise(path.urns))],
        stages=dict(sorted(stages.items(), key=lambda stage: list(_STAGES.values()).index(stage[0]))),
    )


def run(home: Path) -> Measurement:
    """Makes the stack once in a fresh home, as slowly as AWS would.

    Raises:
        RuntimeError: The engine failed.
    """
    with Sandbox(cli.find(_say), home, on_call=_take_time) as sandbox, _arrivals(home) as events:
        done = sandbox.up(CHECKOUT, STACK, preview_first=False)
        if done.exit_code != 0:
            raise RuntimeError(f"up failed:\n{done.output}")
        time.sleep(10 * _POLL_SECONDS)
        state = sandbox.export(CHECKOUT, STACK)
    return measure(events, state)


def report(found: Measurement) -> str:
    """The figures in words, with the chain that decides."""
    lines = [
        f"Critical path ({found.path.seconds:.1f} s; each figure is AWS's times {SCALE:.3f}):",
        *(f"  {_named(urn)}, after {idle:.2f} s" for urn, idle in zip(found.path.urns, found.idle, strict=True)),
        "Stages of AWS's sample, one after another:",
        *(f"  {seconds:6.1f} s  {stage}" for stage, seconds in found.stages.items()),
        f"First creation to last: {found.makespan:.1f} s",
        f"makespan / critical path: {found.ratio:.3f} (allowed {ALLOWED})",
        f"the sample's order / makespan: {found.factor:.2f}",
    ]
    return "\n".join(lines)


def main() -> int:
    """Prints the report; 1 when `up` is less parallel than allowed."""
    home = Path(tempfile.mkdtemp(prefix="ray-llm-eks-bench-"))
    try:
        found = run(home)
    finally:
        shutil.rmtree(home, ignore_errors=True)
    print(report(found))
    return 0 if found.ratio <= ALLOWED else 1


def _take_time(operation: str, ref: ResourceRef) -> None:
    if operation == "create":
        time.sleep(durations.creation(ref.token, ref.name).seconds * SCALE)


@contextmanager
def _arrivals(home: Path) -> Iterator[list[tuple[float, dict[str, Any]]]]:
    """Collects the engine's events with the time they arrive: their own time stamps are whole seconds."""
    found: list[tuple[float, dict[str, Any]]] = []
    stop = threading.Event()

    def follow() -> None:
        read: dict[Path, int] = {}
        while not stop.wait(_POLL_SECONDS):
            for log in home.glob("*/events"):
                try:
                    text = log.read_bytes()
                except FileNotFoundError:
                    continue
                whole = text[: text.rfind(b"\n") + 1]
                now = time.monotonic()
                found.extend((now, json.loads(line)) for line in whole[read.get(log, 0) :].splitlines())
                read[log] = len(whole)

    follower = threading.Thread(target=follow, daemon=True)
    follower.start()
    try:
        yield found
    finally:
        stop.set()
        follower.join()


def _named(urn: str) -> str:
    kind, _, name = urn.rpartition("::")
    return f"{kind.rpartition('$')[2].rpartition('::')[2]} {name}"


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
