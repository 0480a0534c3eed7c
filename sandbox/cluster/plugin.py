"""Pulumi's Kubernetes plugin in the sandbox: where the engine finds it, and what it sees of the world."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from sandbox.cluster.tools import PLUGIN, Tools

# A kubeconfig of EKS asks the AWS CLI for a token (sandbox/eks/kubeconfig.py); this answers in its place.
_AWS: Final = """#!/bin/sh
while [ $# -gt 0 ]; do
    [ "$1" = --cluster-name ] && name=$2
    shift
done
token=$(cat {clusters}/"$name"/token 2>/dev/null) || {{
    echo "the sandbox has no cluster '$name'" >&2
    exit 254
}}
printf '{{"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1beta1", "status": {{"token": "%s"}}}}' "$token"
"""


def install(home: Path, pulumi_home: Path, tools: Tools, environment: Mapping[str, str]) -> None:
    """Puts the plugin where the engine looks for the version that the SDK asks for, over what stands there.

    Args:
        home: The sandbox's home.
        pulumi_home: ``PULUMI_HOME``.
        tools: The programs.
        environment: Variables that the plugin gets beside the engine's.
    """
    aws = home / "bin" / "aws"
    _write(aws, _AWS.format(clusters=shlex.quote(str(home / "clusters"))))
    # The user's own clusters are out of reach.
    given = {"KUBECONFIG": "/dev/null", **environment}
    lines = [f"export {name}={shlex.quote(value)}" for name, value in given.items()]
    text = "\n".join(
        [
            "#!/bin/sh",
            *lines,
            f'export PATH={shlex.quote(str(aws.parent))}:"$PATH"',
            f'exec {shlex.quote(str(tools.provider))} "$@"',
        ]
    )
    _write(pulumi_home / "plugins" / f"resource-kubernetes-v{PLUGIN}" / "pulumi-resource-kubernetes", f"{text}\n")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
