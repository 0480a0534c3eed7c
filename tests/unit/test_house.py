"""What the documents say of the repository, and what the repository keeps to."""

import re
import subprocess
from pathlib import Path

import pytest

from policies.ray_efa_policies.pack import POLICIES
from policies.ray_efa_policies.policies import UNVERIFIED_SUFFIX

CHECKOUT = Path(__file__).resolve().parents[2]
TRACKED = subprocess.run(
    ["git", "ls-files"], cwd=CHECKOUT, capture_output=True, text=True, check=True
).stdout.splitlines()
PAGES = [path for path in TRACKED if path.endswith(".md")]
POLICY_NAMES = [policy.name for policy in POLICIES if not policy.name.endswith(UNVERIFIED_SUFFIX)]


def text(path: str) -> str:
    return (CHECKOUT / path).read_text()


def test_every_make_target_that_the_readme_names_exists() -> None:
    targets = set(re.findall(r"^([a-z][a-z-]*):", text("Makefile"), re.MULTILINE))
    named = set(re.findall(r"\bmake ([a-z][a-z-]*)", text("README.md")))
    assert named
    assert named <= targets


@pytest.mark.parametrize("page", PAGES)
def test_every_link_to_a_file_leads_somewhere(page: str) -> None:
    links = re.findall(r"\]\((?!https?://|#)([^)#]+)", text(page))
    missing = [link for link in links if not (CHECKOUT / page).parent.joinpath(link).exists()]
    assert missing == []


@pytest.mark.parametrize("name", POLICY_NAMES)
def test_every_policy_stands_in_the_packs_own_readme(name: str) -> None:
    assert f"| `{name}` |" in text("policies/README.md")


def test_no_module_is_too_long_to_read() -> None:
    long = {path: lines for path in TRACKED if path.endswith(".py") and (lines := text(path).count("\n")) > 380}
    assert long == {}


def test_nothing_names_the_machine_it_was_written_on() -> None:
    here = re.compile(r"/(?:work|root)/[a-z]")
    assert [path for path in TRACKED if not path.endswith(".json") and here.search(text(path))] == []


def test_no_product_code_imports_the_sandbox_or_the_tests() -> None:
    product = [path for path in TRACKED if path.startswith(("components/", "policies/")) or path == "__main__.py"]
    foreign = re.compile(r"^\s*(?:from|import) (?:sandbox|tests|docs|benchmarks)\b", re.MULTILINE)
    assert [path for path in product if path.endswith(".py") and foreign.search(text(path))] == []


def test_the_pack_imports_nothing_of_the_project_outside_its_folder() -> None:
    pack = [path for path in TRACKED if path.startswith("policies/") and path.endswith(".py")]
    foreign = re.compile(r"^\s*(?:from|import) (?:components|sandbox|pulumi_aws|pulumi_eks|pulumi_kubernetes)\b", re.M)
    assert [path for path in pack if foreign.search(text(path))] == []


def test_the_program_is_short_enough_to_be_read_at_once() -> None:
    assert text("__main__.py").count("\n") <= 60
