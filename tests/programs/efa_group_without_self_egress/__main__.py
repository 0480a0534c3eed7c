"""A launch template with EFA; its security group lets all traffic out by CIDR, which EFA traffic never matches."""

import pulumi
import pulumi_aws as aws

corrected = pulumi.Config().get_bool("corrected")

vpc = aws.ec2.Vpc("training", cidr_block="10.0.0.0/16")
efa = aws.ec2.SecurityGroup(
    "efa",
    vpc_id=vpc.id,
    ingress=[{"protocol": "-1", "from_port": 0, "to_port": 0, "self": True}],
    egress=[
        {"protocol": "-1", "from_port": 0, "to_port": 0, "cidr_blocks": ["0.0.0.0/0"]},
        *([{"protocol": "-1", "from_port": 0, "to_port": 0, "self": True}] if corrected else []),
    ],
)
aws.ec2.LaunchTemplate(
    "efa",
    instance_type="g6.8xlarge",
    network_interfaces=[
        {
            "device_index": 0,
            "network_card_index": 0,
            "interface_type": "efa",
            "security_groups": [efa.id],
            "delete_on_termination": "true",
        }
    ],
)
