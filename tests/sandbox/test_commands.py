"""``python -m sandbox up|refresh|destroy|inventory|orphans`` over a small program, from what they print to what they leave."""

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from sandbox import __main__ as command_line
from sandbox import cli
from sandbox.engine import CHECKOUT, Sandbox

PROGRAM = """
import pulumi
import pulumi_aws as aws

tags = {"Project": "shop", "Stack": pulumi.get_stack()}
vpc = aws.ec2.Vpc("net", cidr_block="10.1.0.0/16", tags=tags)
for number, zone in enumerate(pulumi.Config().require_object("zones")):
    aws.ec2.Subnet(f"net-{zone}", vpc_id=vpc.id, cidr_block=f"10.1.{number}.0/24", availability_zone=zone, tags=tags)
"""
FAULT_KINDS = (
    "throttling, insufficient-capacity, quota-exceeded, access-denied, reservation-expired, node-creation-failure,"
    " dependency-violation, time-out, api-server-restart, worker-never-ready, operator-missing, namespace-terminating,"
    " application-fails"
)


@dataclass
class Shop:
    """A program, a home, and the command line over both."""

    program: Path
    home: Path
    capture: pytest.CaptureFixture[str]

    def run(self, command: str, *options: str, stack: str = "dev") -> tuple[int, str, str]:
        """Exit code, standard output, and standard error without the line that says what is being done."""
        self.capture.readouterr()
        # The program has no cluster, so that a real Kubernetes would be built for nothing.
        echoed = ["--kubernetes", "echo"] if command == "up" else []
        code = command_line.main([command, "--stack", stack, "--program", str(self.program), *echoed, *options])
        out, err = self.capture.readouterr()
        doing = ("Previewing ", "Updating ", "Refreshing ", "Destroying ")
        said = "\n".join(line for line in err.splitlines() if not line.startswith(doing))
        return code, out, said

    def inventory(self) -> list[str]:
        code, out, err = self.run("inventory")
        assert (code, err) == (0, "")
        return out.strip().splitlines()


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shop:
    program, home = tmp_path / "program", tmp_path / "home"
    program.mkdir()
    (program / "Pulumi.yaml").write_text(yaml.safe_dump({"name": "shop", "runtime": "python"}))
    for stack in ("dev", "staging"):
        config = {"aws:region": "us-east-1", "shop:zones": ["us-east-1a", "us-east-1b"]}
        (program / f"Pulumi.{stack}.yaml").write_text(yaml.safe_dump({"config": config}))
    (program / "__main__.py").write_text(PROGRAM)
    monkeypatch.setattr(command_line, "HOME", home)
    return Shop(program, home, capsys)


@pytest.fixture
def living() -> Iterator[int]:
    """The number of a process that lives."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process.pid
    process.communicate()


def killed_up(shop: Shop, at: int) -> None:
    """An `up` whose CLI is killed when the provider is asked for its ``at``-th resource."""
    asked, turn = 0, threading.Lock()

    def count(operation: str, _: object) -> None:
        nonlocal asked
        with turn:
            asked += operation == "create"
            if asked == at:
                box.kill()

    with Sandbox(cli.find(print), shop.home, on_call=count) as box:
        assert box.up(shop.program, "dev").exit_code == -9


def test_a_stack_lives_from_up_to_destroy(shop: Shop) -> None:
    code, out, err = shop.run("up")
    assert (code, err) == (0, ""), out
    assert "+ aws:ec2/vpc:Vpc net" in out
    assert "    + 4 created" in out
    assert out.rstrip().splitlines()[-1].startswith("Simulated: ")
    listed = shop.inventory()
    assert [line.split()[0] for line in listed if line.startswith("ec2:")] == ["ec2:subnet", "ec2:subnet", "ec2:vpc"]
    assert listed[-1] == "3 resources"
    assert shop.run("inventory", stack="staging")[1] == "Not shown: 3 of other stacks.\n\n0 resources\n"
    assert shop.run("orphans", stack="staging")[1].startswith("No orphans: ")

    code, out, _ = shop.run("up")
    assert code == 0
    assert "aws:ec2" not in out
    assert "    4 unchanged" in out

    code, out, _ = shop.run("refresh")
    assert code == 0
    assert "aws:ec2" not in out
    assert "    4 unchanged" in out

    code, out, _ = shop.run("destroy")
    assert code == 0
    assert "- aws:ec2/vpc:Vpc net" in out
    assert "    - 4 deleted" in out
    assert shop.inventory() == ["0 resources"]


def test_what_a_killed_up_has_lost_is_found_and_deleted(shop: Shop) -> None:
    killed_up(shop, at=2)

    code, out, said = shop.run("orphans")
    assert code == 0
    assert "orphans of stack dev; `python -m sandbox orphans --stack dev --delete` deletes them" in out
    assert "ec2:subnet" in out
    assert "Took off the lock of stack dev: process " in said

    code, out, _ = shop.run("orphans", "--delete")
    assert code == 0
    deleted = [line for line in out.splitlines() if line.startswith("Deleted ec2:subnet ")]
    assert out.splitlines()[-1] == f"{len(deleted)} of {len(deleted)} orphans deleted"
    assert shop.run("orphans")[1] == "No orphans: all that carries the tags of stack dev is in its state.\n"

    assert shop.run("up")[0] == 0
    assert shop.inventory()[-1] == "3 resources"
    assert shop.run("destroy")[0] == 0
    assert shop.inventory() == ["0 resources"]


def test_what_the_policies_block_is_not_begun(shop: Shop) -> None:
    worker = CHECKOUT / "tests" / "programs" / "worker_without_efa"
    shop.program = worker
    code, out, _ = shop.run("up")
    assert code not in (0, 2)
    assert "ray-worker-requests-efa" in out
    assert shop.inventory() == ["0 resources"]


def test_all_that_is_wrong_with_a_command_is_said_at_once(shop: Shop) -> None:
    code, out, said = shop.run("up", "--config", "zones", "--fault", "flood", "--fault", "throttling:often")
    assert (code, out) == (2, "")
    assert said.splitlines() == [
        "error: --config zones: write KEY=VALUE, for instance aws:region=us-east-1",
        f"error: --fault flood: 'flood' is no fault; the kinds are {FAULT_KINDS}",
        "error: --fault throttling:often: write how many times after the colon, for instance throttling:2",
    ]


def test_a_secret_without_a_key_is_refused_unseen(shop: Shop) -> None:
    code, out, said = shop.run("up", "--secret-config", "hf_abc", "--secret-config", "a:b=1", "--config", "a:b=2")
    assert (code, out) == (2, "")
    assert said.splitlines() == [
        "error: --secret-config: write KEY=VALUE, for instance ray-llm-eks:model.huggingFaceToken=hf_...",
        "error: --secret-config a:b: --config sets it too; leave out one of the two",
    ]


def test_a_secret_reaches_the_program_and_is_never_shown(shop: Shop) -> None:
    source = (shop.program / "__main__.py").read_text()
    reading = """
token = pulumi.Config().require_secret_object("hub")["token"]
pulumi.export("length", token.apply(len))
pulumi.export("token", token)
aws.ec2.SecurityGroup("shown", description=token, vpc_id=vpc.id, tags=tags)
"""
    (shop.program / "__main__.py").write_text(source + reading)
    options = ("--secret-config", "shop:hub.token=hf_=abc def")
    for command in ("preview", "up"):
        code, out, said = shop.run(command, *options)
        assert code == 0, out + said
        assert "hf_" not in out + said
    with Sandbox(cli.find(print), shop.home, shared=True) as box:
        (group,) = (one for one in box.aws.cloud.account.records() if one.token.endswith(":SecurityGroup"))
        state = box.export(shop.program, "dev")
    assert group.inputs["description"] == "hf_=abc def"
    assert "hf_" not in json.dumps(state)


def test_a_locked_stack_is_one_clean_error(shop: Shop, living: int) -> None:
    folder = shop.home / "state" / ".pulumi" / "locks" / "organization" / "shop" / "dev"
    folder.mkdir(parents=True)
    lock = {"pid": living, "username": "me", "hostname": socket.gethostname(), "timestamp": "2999-01-01T00:00:00Z"}
    (folder / "1.json").write_text(json.dumps(lock))
    code, out, said = shop.run("destroy")
    assert (code, out) == (2, "")
    assert said == (
        f"error: stack dev is locked by process {living} on {socket.gethostname()} since 2999-01-01T00:00:00Z: wait until"
        f" it has ended; if there is no such process, remove {folder / '1.json'}"
    )


def test_a_home_in_use_is_one_clean_error(shop: Shop) -> None:
    with Sandbox(cli.find(print), shop.home):
        code, out, said = shop.run("inventory")
    assert (code, out) == (2, "")
    assert said == (
        f"error: the sandbox in {shop.home} is in use by process {os.getpid()}: wait until its command has ended, or end it"
    )


@pytest.mark.parametrize("command", ["up", "refresh", "destroy", "inventory", "orphans"])
def test_a_program_that_is_not_there_is_named(shop: Shop, command: str) -> None:
    shop.program = shop.program / "nowhere"
    code, out, said = shop.run(command)
    assert (code, out) == (2, "")
    assert said == (
        f"error: --program {shop.program}: there is no Pulumi.yaml in it; name the folder of a Pulumi program"
    )
