import gzip
import json
from importlib import resources

import pytest

from policies.ray_efa_policies.instances import INSTANCE_TYPES


@pytest.fixture(scope="module")
def recorded():
    """EC2's own answers to DescribeInstanceTypes, as moto carries them."""
    data = resources.files("moto").joinpath("ec2/resources/instance_types.json.gz").read_bytes()
    return json.loads(gzip.decompress(data))


@pytest.mark.parametrize("name", INSTANCE_TYPES)
def test_a_row_of_the_catalogue_is_what_ec2_says(recorded, name):
    row, told = INSTANCE_TYPES[name], recorded[name]
    gpus, network = told["GpuInfo"]["Gpus"], told["NetworkInfo"]
    storage = told.get("InstanceStorageInfo", {}).get("TotalSizeInGB", 0)
    assert (row.gpus, row.gpu_memory_mib) == (sum(gpu["Count"] for gpu in gpus), gpus[0]["MemoryInfo"]["SizeInMiB"])
    assert (row.vcpus, row.memory_mib) == (told["VCpuInfo"]["DefaultVCpus"], told["MemoryInfo"]["SizeInMiB"])
    assert row.nvme_gb == storage
    assert row.efa_interfaces == network["EfaInfo"]["MaximumEfaInterfaces"]
    assert row.network_cards == network["MaximumNetworkCards"]


@pytest.mark.parametrize("name", INSTANCE_TYPES)
def test_the_compute_capability_of_every_gpu_is_known(name):
    capability = INSTANCE_TYPES[name].compute_capability
    assert capability is not None
    assert (capability < 8.0) == (INSTANCE_TYPES[name].gpu_name in {"T4", "V100"})


def test_every_nvidia_type_with_efa_is_in_the_catalogue(recorded):
    known = {
        name
        for name, told in recorded.items()
        if told.get("NetworkInfo", {}).get("EfaSupported")
        and any(gpu.get("Manufacturer") == "NVIDIA" for gpu in told.get("GpuInfo", {}).get("Gpus", []))
    }
    assert known - set(INSTANCE_TYPES) == set()


def test_every_interface_layout_holds_all_efa_devices_of_its_type():
    for row in INSTANCE_TYPES.values():
        layout = row.interface_layout()
        assert sum(item.interface_type != "interface" for item in layout) == row.efa_interfaces
        assert [item.device_index for item in layout] == [0] + [1] * (row.network_cards - 1)
