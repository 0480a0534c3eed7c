"""Self-managed nodes: an Auto Scaling group over two zones, and classic rule resources that open the group one way only."""

import pulumi
import pulumi_aws as aws

corrected = pulumi.Config().get_bool("corrected")

vpc = aws.ec2.Vpc("training", cidr_block="10.0.0.0/16")
first = aws.ec2.Subnet("first", vpc_id=vpc.id, cidr_block="10.0.0.0/20", availability_zone="us-east-1a")
second = aws.ec2.Subnet("second", vpc_id=vpc.id, cidr_block="10.0.16.0/20", availability_zone="us-east-1b")

nodes = aws.ec2.SecurityGroup("nodes", vpc_id=vpc.id, description="GPU nodes")
aws.ec2.SecurityGroupRule(
    "nodes-from-nodes",
    type="ingress",
    security_group_id=nodes.id,
    protocol="-1",
    from_port=0,
    to_port=0,
    self=True,
)
aws.ec2.SecurityGroupRule(
    "nodes-to-anywhere",
    type="egress",
    security_group_id=nodes.id,
    protocol="-1",
    from_port=0,
    to_port=0,
    cidr_blocks=["0.0.0.0/0"],
)
if corrected:
    aws.ec2.SecurityGroupRule(
        "nodes-to-nodes",
        type="egress",
        security_group_id=nodes.id,
        protocol="all",
        from_port=0,
        to_port=0,
        source_security_group_id=nodes.id,
    )

template = aws.ec2.LaunchTemplate(
    "gpu",
    image_id="ami-0123456789abcdef0",
    instance_type="g6e.12xlarge",
    network_interfaces=[
        {"device_index": 0, "interface_type": "efa", "security_groups": [nodes.id], "delete_on_termination": "true"}
    ],
)
aws.autoscaling.Group(
    "gpu",
    min_size=2,
    max_size=2,
    vpc_zone_identifiers=[first.id] if corrected else [first.id, second.id],
    launch_template={"id": template.id, "version": "$Latest"},
)
