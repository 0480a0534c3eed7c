"""The command line that people type, ``python -m sandbox``, from its exit codes to what it leaves behind."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.engine.previews import CHECKOUT, PROGRAMS

WORKER = PROGRAMS / "worker_without_efa"


def sandbox(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "sandbox", *arguments], cwd=CHECKOUT, capture_output=True, text=True, timeout=300
    )


def fingerprint(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.mark.xdist_group("the sandbox's own home")
def test_a_blocked_preview_prints_tree_policies_and_what_was_simulated_and_leaves_no_trace() -> None:
    before = fingerprint(WORKER)

    done = sandbox("preview", "--program", str(WORKER), "--stack", "dev")

    assert done.returncode not in (0, 2), done.stderr
    assert "+ kubernetes:ray.io/v1:RayService llm" in done.stdout
    assert "ray-worker-requests-efa" in done.stdout
    assert "vpc.amazonaws.com/efa" in done.stdout
    assert done.stdout.rstrip().splitlines()[-1].startswith("Simulated: ")
    assert fingerprint(WORKER) == before


@pytest.mark.xdist_group("the sandbox's own home")
def test_config_given_on_the_command_line_reaches_the_program() -> None:
    done = sandbox(
        *("preview", "--program", str(WORKER), "--stack", "dev", "--config", "worker-without-efa:corrected=true")
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "ray-worker-requests-efa" not in done.stdout


@pytest.mark.xdist_group("the sandbox's own home")
def test_a_relative_program_folder_is_taken_from_where_the_command_is_typed() -> None:
    done = sandbox(
        *("preview", "--program", os.path.relpath(WORKER, CHECKOUT), "--stack", "dev"),
        *("--config", "worker-without-efa:corrected=true"),
    )

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--program", "nowhere", "--stack", "dev"),
            f"error: --program {CHECKOUT / 'nowhere'}: there is no Pulumi.yaml in it;"
            " name the folder of a Pulumi program",
        ),
        (
            ("--program", str(WORKER), "--stack", "production"),
            "error: --stack production: there is no Pulumi.production.yaml; the stacks of this program are dev",
        ),
        (
            ("--program", str(WORKER), "--stack", "dev", "--config", "corrected"),
            "error: --config corrected: write KEY=VALUE, for instance aws:region=us-east-1",
        ),
    ],
    ids=["no such program", "no such stack", "config without a value"],
)
@pytest.mark.xdist_group("the sandbox's own home")
def test_a_command_that_cannot_run_says_so_in_one_line_and_exits_with_2(
    arguments: tuple[str, ...], message: str
) -> None:
    done = sandbox("preview", *arguments)

    assert done.returncode == 2
    assert done.stdout == ""
    assert [line for line in done.stderr.splitlines() if not line.startswith("Previewing ")] == [message]


@pytest.mark.xdist_group("the sandbox's own home")
def test_a_program_whose_project_file_is_no_yaml_is_named(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: [unclosed\n")

    done = sandbox("preview", "--program", str(tmp_path), "--stack", "dev")

    assert done.returncode == 2
    assert f"error: {tmp_path / 'Pulumi.yaml'}: it is not YAML" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.xdist_group("the sandbox's own home")
def test_a_secret_of_the_stack_file_is_replaced_by_a_placeholder_that_stays_a_secret(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text(yaml.safe_dump({"name": "sealed", "runtime": "python"}))
    (tmp_path / "Pulumi.dev.yaml").write_text(yaml.safe_dump({"config": {"sealed:token": {"secure": "v1:AAAA:BBBB"}}}))
    (tmp_path / "__main__.py").write_text(
        "import pulumi\n"
        "token = pulumi.Config().require_secret('token')\n"
        "pulumi.export('sealed', token)\n"
        "pulumi.export('replaced', pulumi.Output.unsecret(token.apply(lambda text: text == 'sandbox-placeholder')))\n"
    )

    done = sandbox("preview", "--program", str(tmp_path), "--stack", "dev")

    assert done.returncode == 0, done.stdout + done.stderr
    outputs = " ".join(done.stdout.replace('"', "").split())
    assert "sealed : [secret]" in outputs
    assert "replaced: true" in outputs
