"""Starts the pack for the Pulumi engine. The only place that constructs a PolicyPack: it serves, and does not return."""

import os
import sys

from pulumi_policy import PolicyPack

# The engine runs this file by path, so that its folder is not on the module path by itself.
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from ray_efa_policies.pack import POLICIES

PolicyPack(name="ray-efa-policies", policies=POLICIES)
