"""Tests with emulated hosts are left out where this machine cannot make them."""

import emulated_hosts
import pytest


@pytest.fixture(autouse=True, scope="session")
def hosts_can_be_made():
    reason = emulated_hosts.why_not()
    if reason:
        pytest.skip(reason)
