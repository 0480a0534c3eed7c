"""Node groups of a stack, whoever made them, and whether they are GPU or EFA groups.

Looks first at what cannot be unknown. ``amiType`` and ``instanceTypes`` are outputs that EKS fills in: unknown in a first
preview unless the program sets them, in which case they, or the labels, taints and template beside them, say what it is.
"""

import re
from dataclasses import dataclass
from typing import Final

from .instances import INSTANCE_TYPES
from .stack import Resource, Stack
from .tokens import LAUNCH_TEMPLATES, NODE_GROUPS, NodeGroupFields
from .values import UNKNOWN, Unknown, at, mapping, sequence

EFA_INTERFACE_TYPES: Final = ("efa", "efa-only")
GPU_MARKS: Final = ("nvidia.com/gpu", "nvidia.com/gpu.present", "k8s.amazonaws.com/accelerator")
"""Keys of labels and taints that mark GPU nodes."""

_GPU_TYPE = re.compile(r"(p|g|gr)\d+[a-z0-9-]*\..+")
_CUSTOM_AMI = "CUSTOM"
"""An image of one's own: it says nothing of GPUs. Every other type that is no GPU type makes no GPU nodes."""
_GPU_AMI = re.compile(r"_(GPU|NVIDIA)(_|$)")


@dataclass(frozen=True)
class Verdict:
    """What a group is: ``reason`` says why it is judged; ``unknown`` what hides the answer; both empty means CPU."""

    reason: str = ""
    unknown: str = ""
    efa: bool = False


@dataclass(frozen=True)
class Template:
    """A launch template or configuration: its resource, and the mapping in which the instance data stands."""

    resource: Resource

    @property
    def nested(self) -> tuple[str, ...]:
        """The path from the resource's properties to the instance data."""
        return LAUNCH_TEMPLATES[self.resource.aws]

    def given(self, name: str) -> object:
        """A field of the instance data as the program gave it."""
        if not self.nested:
            return self.resource.given(name)
        return at(self.resource.given(self.nested[0]), name)

    @property
    def interfaces_property(self) -> str:
        """The top-level property under which the interfaces stand."""
        return self.nested[0] if self.nested else "networkInterfaces"

    def efa_interfaces(self) -> list[tuple[int, object]] | Unknown:
        """The EFA interfaces with their indices; UNKNOWN if it cannot be seen whether there are any."""
        interfaces = self.given("networkInterfaces")
        if interfaces is UNKNOWN:
            return UNKNOWN
        typed = [(index, item, at(item, "interfaceType")) for index, item in enumerate(sequence(interfaces))]
        found = [(index, item) for index, item, kind in typed if kind in EFA_INTERFACE_TYPES]
        return UNKNOWN if not found and any(kind is UNKNOWN for _, _, kind in typed) else found


@dataclass(frozen=True)
class NodeGroup:
    """One node group, Auto Scaling group, or whatever else makes nodes from a list of subnets."""

    resource: Resource
    fields: NodeGroupFields
    templates: tuple[Template, ...]
    template_unseen: bool
    """Whether it uses a template that is not in the stack."""

    @property
    def kind(self) -> str:
        """How a message calls it."""
        return "Auto Scaling group" if self.resource.aws[1] == "autoscaling" else "node group"


def node_groups(stack: Stack) -> list[NodeGroup]:
    """All groups of a stack."""
    templates = [Template(resource) for resource in stack.aws(LAUNCH_TEMPLATES)]
    found: list[NodeGroup] = []
    for resource in stack.aws(NODE_GROUPS):
        fields = NODE_GROUPS[resource.aws]
        used = _templates(stack, resource, templates)
        names = any(resource.given(name) is not None for name in _TEMPLATE_PROPERTIES)
        found.append(NodeGroup(resource, fields, used, template_unseen=names and not used))
    return found


_TEMPLATE_PROPERTIES: Final = (
    "launchTemplate",
    "mixedInstancesPolicy",
    "launchConfiguration",
    "launchConfigurationName",
)
_SPECIFICATIONS: Final = (
    ("launchTemplate",),
    ("mixedInstancesPolicy", "launchTemplate", "launchTemplateSpecification"),
)


def _templates(stack: Stack, resource: Resource, templates: list[Template]) -> tuple[Template, ...]:
    urns = set(resource.came_from(*_TEMPLATE_PROPERTIES))
    specifications = [at(resource.props, *path) for path in _SPECIFICATIONS]
    keys = ("id", "name", "launchTemplateId", "launchTemplateName")
    names = [at(spec, key) for spec in specifications for key in keys]
    names += [resource.props.get(name) for name in _TEMPLATE_PROPERTIES]
    known = [name for name in names if isinstance(name, str)]
    return tuple(
        template
        for template in templates
        if template.resource.urn in urns
        or any(template.resource.props.get(key) in known for key in ("id", "name", "launchTemplateId"))
    )


def is_gpu_type(instance_type: object) -> bool:
    """Whether EC2 gives this type a GPU: a row of the catalogue, or a name of the P, G or Gr families."""
    return isinstance(instance_type, str) and (
        instance_type in INSTANCE_TYPES or _GPU_TYPE.fullmatch(instance_type) is not None
    )


def judge(group: NodeGroup) -> Verdict:
    """Whether a group is a GPU or EFA group, a CPU group, or cannot be told."""
    layouts = [template.efa_interfaces() for template in group.templates]
    if any(layouts):
        return Verdict("its launch template has EFA interfaces", efa=True)
    types = _instance_types(group)
    gpu_type = next((kind for kind in types if is_gpu_type(kind)), None)
    if gpu_type:
        return Verdict(f"its instance type is {gpu_type}")
    ami = group.resource.given(group.fields.ami_type) if group.fields.ami_type else None
    if isinstance(ami, str) and _GPU_AMI.search(ami):
        return Verdict(f"its amiType is {ami}")
    mark = _mark(group.resource)
    if mark:
        return Verdict(f"its nodes carry {mark}")
    if any(_wants_accelerators(requirements) for requirements in _requirements(group)):
        return Verdict("its instance requirements ask for GPUs")
    if any(layout is UNKNOWN for layout in layouts):
        return Verdict(unknown="the network interfaces of its launch template")
    if any(kind is UNKNOWN for kind in types):
        return Verdict(unknown="its instance type")
    if not types and ami is UNKNOWN:
        return Verdict(unknown="its amiType")
    named = isinstance(ami, str) and ami != _CUSTOM_AMI
    if not types and group.template_unseen and not named:
        return Verdict(unknown="its launch template, which is not in this stack,")
    return Verdict()


def _instance_types(group: NodeGroup) -> list[object]:
    resource = group.resource
    own = resource.given(group.fields.instance_types) if group.fields.instance_types else None
    types: list[object] = [UNKNOWN] if own is UNKNOWN else list(sequence(own))
    types += [kind for template in group.templates if (kind := template.given("instanceType")) is not None]
    overrides = at(resource.given("mixedInstancesPolicy"), "launchTemplate", "overrides")
    types += [kind for item in sequence(overrides) if (kind := at(item, "instanceType")) is not None]
    return types


def _requirements(group: NodeGroup) -> list[object]:
    overrides = at(group.resource.given("mixedInstancesPolicy"), "launchTemplate", "overrides")
    return [
        *(template.given("instanceRequirements") for template in group.templates),
        *(at(item, "instanceRequirements") for item in sequence(overrides)),
    ]


def _wants_accelerators(requirements: object) -> bool:
    least = at(requirements, "acceleratorCount", "min")
    named = [at(requirements, key) for key in ("acceleratorNames", "acceleratorManufacturers", "acceleratorTypes")]
    return (isinstance(least, int | float) and least >= 1) or any(sequence(names) for names in named)


def labels(resource: Resource) -> dict[str, object]:
    """The labels that EKS puts on the nodes of a group."""
    return dict(mapping(resource.given("labels")))


def _mark(resource: Resource) -> str:
    for key, value in labels(resource).items():
        if key in GPU_MARKS and value != "false":
            return f"the label {key}"
    for taint in sequence(resource.given("taints")):
        if at(taint, "key") in GPU_MARKS:
            return f"the taint {at(taint, 'key')}"
    return ""
