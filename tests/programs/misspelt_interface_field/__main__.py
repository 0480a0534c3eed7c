"""A launch template whose interface says `deviceIdx`; the Python SDK passes on what it does not know."""

import pulumi
import pulumi_aws as aws

field = "deviceIndex" if pulumi.Config().get_bool("corrected") else "deviceIdx"

vpc = aws.ec2.Vpc("training", cidr_block="10.0.0.0/16")
rule = {"protocol": "-1", "from_port": 0, "to_port": 0, "self": True}
efa = aws.ec2.SecurityGroup("efa", vpc_id=vpc.id, ingress=[rule], egress=[rule])
aws.ec2.LaunchTemplate(
    "efa",
    instance_type="g6.8xlarge",
    network_interfaces=[{field: 0, "interfaceType": "efa", "securityGroups": [efa.id], "deleteOnTermination": "true"}],
)
