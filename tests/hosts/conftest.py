"""Skips the tests with emulated hosts if this machine cannot create them."""

import emulated_hosts
import pytest


@pytest.fixture(autouse=True, scope="session")
def hosts_can_be_made():
    reason = emulated_hosts.why_not()
    if reason:
        pytest.skip(reason)
