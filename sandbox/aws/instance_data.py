"""One row of EC2's DescribeInstanceTypes as ``ec2.getInstanceType`` shows it."""

from collections.abc import Mapping, Sequence
from typing import Any


def described(row: Mapping[str, Any]) -> dict[str, Any]:
    """The function's result but for ``region``. Memory in MiB, storage in GB, as EC2 states them."""
    network, processor, cpus = row["NetworkInfo"], row["ProcessorInfo"], row["VCpuInfo"]
    storage, ebs = row.get("InstanceStorageInfo", {}), row.get("EbsInfo", {})
    speed = ebs.get("EbsOptimizedInfo", {})
    return {
        "id": row["InstanceType"],
        "instanceType": row["InstanceType"],
        "autoRecoverySupported": row.get("AutoRecoverySupported", False),
        "bandwidthWeightings": network.get("BandwidthWeightings", []),
        "bareMetal": row["BareMetal"],
        "bootModes": row.get("SupportedBootModes", []),
        "burstablePerformanceSupported": row["BurstablePerformanceSupported"],
        "currentGeneration": row["CurrentGeneration"],
        "dedicatedHostsSupported": row["DedicatedHostsSupported"],
        "defaultCores": cpus.get("DefaultCores", 0),
        "defaultNetworkCardIndex": network["DefaultNetworkCardIndex"],
        "defaultThreadsPerCore": cpus.get("DefaultThreadsPerCore", 0),
        "defaultVcpus": cpus["DefaultVCpus"],
        "ebsEncryptionSupport": ebs.get("EncryptionSupport", ""),
        "ebsNvmeSupport": ebs.get("NvmeSupport", ""),
        "ebsOptimizedSupport": ebs.get("EbsOptimizedSupport", ""),
        "ebsPerformanceBaselineBandwidth": speed.get("BaselineBandwidthInMbps", 0),
        "ebsPerformanceBaselineIops": speed.get("BaselineIops", 0),
        "ebsPerformanceBaselineThroughput": speed.get("BaselineThroughputInMBps", 0.0),
        "ebsPerformanceMaximumBandwidth": speed.get("MaximumBandwidthInMbps", 0),
        "ebsPerformanceMaximumIops": speed.get("MaximumIops", 0),
        "ebsPerformanceMaximumThroughput": speed.get("MaximumThroughputInMBps", 0.0),
        "efaMaximumInterfaces": network.get("EfaInfo", {}).get("MaximumEfaInterfaces", 0),
        "efaSupported": network["EfaSupported"],
        "enaSrdSupported": network.get("EnaSrdSupported", False),
        "enaSupport": network["EnaSupport"],
        "encryptionInTransitSupported": network["EncryptionInTransitSupported"],
        "fpgas": _devices(row.get("FpgaInfo", {}).get("Fpgas", [])),
        "freeTierEligible": row["FreeTierEligible"],
        "gpuses": _devices(row.get("GpuInfo", {}).get("Gpus", [])),
        "hibernationSupported": row["HibernationSupported"],
        "hypervisor": row.get("Hypervisor", ""),
        "inferenceAccelerators": _devices(row.get("InferenceAcceleratorInfo", {}).get("Accelerators", [])),
        "instanceDisks": [
            {"count": one["Count"], "size": one["SizeInGB"], "type": one["Type"]} for one in storage.get("Disks", [])
        ],
        "instanceStorageSupported": row["InstanceStorageSupported"],
        "ipv6Supported": network["Ipv6Supported"],
        "maximumIpv4AddressesPerInterface": network["Ipv4AddressesPerInterface"],
        "maximumIpv6AddressesPerInterface": network["Ipv6AddressesPerInterface"],
        "maximumNetworkCards": network["MaximumNetworkCards"],
        "maximumNetworkInterfaces": network["MaximumNetworkInterfaces"],
        "mediaAccelerators": _devices(row.get("MediaAcceleratorInfo", {}).get("Accelerators", [])),
        "memorySize": row["MemoryInfo"]["SizeInMiB"],
        "networkCards": [
            {
                "baselineBandwidth": one.get("BaselineBandwidthInGbps", 0.0),
                "index": one["NetworkCardIndex"],
                "maximumInterfaces": one["MaximumNetworkInterfaces"],
                "peakBandwidth": one.get("PeakBandwidthInGbps", 0.0),
                "performance": one["NetworkPerformance"],
            }
            for one in network["NetworkCards"]
        ],
        "networkPerformance": network["NetworkPerformance"],
        "neuronDevices": [
            {
                "coreCount": one["CoreInfo"]["Count"],
                "coreVersion": one["CoreInfo"]["Version"],
                "count": one["Count"],
                "memorySize": one["MemoryInfo"]["SizeInMiB"],
                "name": one["Name"],
            }
            for one in row.get("NeuronInfo", {}).get("NeuronDevices", [])
        ],
        "nitroEnclavesSupport": row.get("NitroEnclavesSupport", ""),
        "nitroTpmSupport": row.get("NitroTpmSupport", ""),
        "nitroTpmSupportedVersions": row.get("NitroTpmInfo", {}).get("SupportedVersions", []),
        "phcSupport": row.get("PhcSupport", ""),
        "supportedArchitectures": processor["SupportedArchitectures"],
        "supportedCpuFeatures": processor.get("SupportedFeatures", []),
        "supportedPlacementStrategies": row["PlacementGroupInfo"]["SupportedStrategies"],
        "supportedRootDeviceTypes": row["SupportedRootDeviceTypes"],
        "supportedUsagesClasses": row["SupportedUsageClasses"],
        "supportedVirtualizationTypes": row["SupportedVirtualizationTypes"],
        "sustainedClockSpeed": processor.get("SustainedClockSpeedInGhz", 0.0),
        "totalFpgaMemory": row.get("FpgaInfo", {}).get("TotalFpgaMemoryInMiB", 0),
        "totalGpuMemory": row.get("GpuInfo", {}).get("TotalGpuMemoryInMiB", 0),
        "totalInferenceMemory": row.get("InferenceAcceleratorInfo", {}).get("TotalInferenceMemoryInMiB", 0),
        "totalInstanceStorage": storage.get("TotalSizeInGB", 0),
        "totalMediaMemory": row.get("MediaAcceleratorInfo", {}).get("TotalMediaMemoryInMiB", 0),
        "totalNeuronDeviceMemory": row.get("NeuronInfo", {}).get("TotalNeuronDeviceMemoryInMiB", 0),
        "validCores": cpus.get("ValidCores", []),
        "validThreadsPerCores": cpus.get("ValidThreadsPerCore", []),
    }


def _devices(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [
        {
            "count": one["Count"],
            "manufacturer": one["Manufacturer"],
            "memorySize": one.get("MemoryInfo", {}).get("SizeInMiB", 0),
            "name": one["Name"],
        }
        for one in rows
    ]
