"""``python -m sandbox.cluster FOLDER``: the daemon of one cluster, with the programs as JSON on its standard input.

``sandbox.cluster.clusters`` starts it.
"""

import json
import sys
from pathlib import Path
from typing import Any

from sandbox.cluster.daemon import Daemon, DaemonError
from sandbox.cluster.layout import Folder
from sandbox.cluster.tools import Tools

given: dict[str, Any] = json.load(sys.stdin)
programs: dict[str, Any] = {name: value if name == "provider_version" else Path(value) for name, value in given.items()}
try:
    Daemon(Folder(Path(sys.argv[1])), Tools(**programs)).run()
except DaemonError as fault:
    raise SystemExit(str(fault)) from None
