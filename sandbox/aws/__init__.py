"""The stand-in for the ``aws`` provider: as hard on its inputs as the real one, with instance data recorded by moto."""

from sandbox.aws.provider import Aws

__all__ = ["Aws"]
