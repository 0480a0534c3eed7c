"""Stacks on a simulated account, for the tests of AWS."""

import pytest

from tests.sandbox.aws_stack import Stack


@pytest.fixture
def stack() -> Stack:
    """An account with nothing in it."""
    return Stack()


@pytest.fixture
def whole() -> Stack:
    """A network, a cluster and a node group."""
    stack = Stack()
    stack.network()
    stack.cluster()
    stack.nodes()
    return stack
