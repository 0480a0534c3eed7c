"""What a stack gets unless it says otherwise, once for all who need it: how long it waits, what it keeps, what it remakes."""

from typing import Final

HELM_TIMEOUT_MINUTES: Final = 10
"""How long a Helm release of an add-on may take."""

LOG_RETENTION_DAYS: Final = 30
"""How long CloudWatch keeps the control plane's logs."""

NODES_TIMEOUT_MINUTES: Final = 40
"""How long to wait for the GPU nodes; EKS itself does not say soon that a zone has no capacity."""

READY_TIMEOUT_MINUTES: Final = 60
"""How long to wait until the model serves: pulling the image, loading the weights, compiling."""

# pulumi-terraform-bridge knows no taint, which Terraform sets here: the half-made group stays in the state, and the next
# update sends it unchanged inputs. The engine takes the error of a failed create, or update, for a change of this name.
REMADE_AFTER_A_FAILED_CREATE: Final = ("#initerror",)
"""`replace_on_changes` of a node group: one that EKS could not start (CREATE_FAILED) never recovers, so it is made anew."""
