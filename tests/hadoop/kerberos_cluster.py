"""The tests' Hadoop with Kerberos: a private KDC, and a keytab by which every daemon logs in."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import hadoop_conf
import pytest
from hadoop_cluster import HadoopCluster
from hadoop_conf import HOST
from hadoop_variables import found_by_variables

REALM = "HEARTH.TEST"
USER = "alice"  # differs from the processes' user, so that mix-ups fail
PROGRAMS = ("krb5kdc", "kdb5_util", "kadmin.local", "kinit", "curl")
_SERVICES = ("hdfs", "yarn", "HTTP")
_KDC_S = 30.0

_CLIENTS = """[libdefaults]
default_realm = {realm}
dns_lookup_realm = false
dns_lookup_kdc = false
dns_canonicalize_hostname = false
rdns = false
udp_preference_limit = 1
[realms]
{realm} = {{
  kdc = {host}:{port}
}}
"""
_KDC = """[kdcdefaults]
kdc_listen = {host}:{port}
kdc_tcp_listen = {host}:{port}
[realms]
{realm} = {{
  database_name = {folder}/principal
  key_stash_file = {folder}/stash
  acl_file = {folder}/acl
}}
"""


def missing() -> list[str]:
    """The programs for a KDC and its clients that this machine lacks."""
    path = f"{os.environ['PATH']}:/usr/sbin"
    return [name for name in PROGRAMS if shutil.which(name, path=path) is None]


@contextmanager
def secure_hadoop(conf: Path, **options: Any) -> Iterator[KerberosCluster]:
    """A cluster that this process and its children find by variables, with a ticket for its user.

    Skips the test if a KDC cannot be started. `conf`: an empty folder.
    """
    if lacking := missing():
        pytest.skip(f"there is no KDC to start without {', '.join(lacking)}")
    with KerberosCluster(**options) as cluster, found_by_variables(cluster, conf):
        yield cluster


def _principal(service: str) -> str:
    return f"{service}/{HOST}@{REALM}"


class KerberosCluster(HadoopCluster):
    """HDFS and YARN that require a ticket or a token. `user` is a principal of their realm.

    Attributes:
        krb5: the folder of the KDC, with `krb5.conf`.
    """

    def __init__(self, keep: bool = False, token_s: float = 86_400):
        """`token_s`: how long HDFS accepts a token without renewal. YARN renews the tokens with
        which an application starts, until 1.5 times that age.
        """
        super().__init__(keep)
        self._token_ms = int(1000 * token_s)
        self.user = USER
        self.krb5 = self.folder / "krb5"
        self._port = hadoop_conf.free_port()

    @property
    def java_options(self) -> list[str]:
        """JVM options that name the realm's configuration."""
        return [f"-Djava.security.krb5.conf={self.krb5}/krb5.conf"]

    def keytab(self, name: str) -> Path:
        """The keytab of a service or user."""
        return self.krb5 / f"{name}.keytab"

    def tickets(self, name: str = USER) -> dict[str, str]:
        """Variables for the principal's ticket cache, which is created if it is missing."""
        cache = self.krb5 / f"{name}.tickets"
        found = {"KRB5_CONFIG": f"{self.krb5}/krb5.conf", "KRB5CCNAME": f"FILE:{cache}"}
        if not cache.exists():
            who = _principal(name) if name in _SERVICES else f"{name}@{REALM}"
            self._tool("kinit", "-k", "-t", str(self.keytab(name)), "-c", str(cache), who)
        return found

    def environment(self) -> dict[str, str]:
        """Includes the ticket cache of `user`."""
        return {**super().environment(), **self.tickets()}

    def web(self, method: str, path: str, operation: str, **options: str) -> Any:
        """Like the base class's, but by curl, which authenticates with the user's ticket.

        Raises:
            OSError: HDFS refused it; with its answer.
        """
        user = options.pop("user", "hdfs")
        query = "&".join(f"{key}={value}" for key, value in options.items())
        url = f"{self.webhdfs}{path}?op={operation}&{query}"
        return json.loads(self._curl(url, user, "-X", method) or "null")

    def _read(self, url: str) -> bytes:
        return self._curl(url, "hdfs").encode()

    def _curl(self, url: str, user: str, *arguments: str) -> str:
        done = subprocess.run(
            ["curl", "-sS", "--fail-with-body", "--negotiate", "-u", ":", *arguments, url],
            env={**os.environ, **self.tickets(user)},
            capture_output=True,
            text=True,
            timeout=60,
        )
        if done.returncode:
            raise OSError(f"{url}: {done.stdout}{done.stderr}")
        return done.stdout

    def _who(self, user: str) -> dict[str, str]:
        return self.tickets(user)

    def _settings(self) -> dict[str, dict[str, str]]:
        def login(prefix: str, service: str) -> dict[str, str]:
            return {f"{prefix}.keytab": str(self.keytab(service)),
                    f"{prefix}.principal": _principal(service)}  # fmt: skip

        hdfs = {
            "dfs.namenode.keytab.file": str(self.keytab("hdfs")),
            "dfs.namenode.kerberos.principal": _principal("hdfs"),
            "dfs.datanode.keytab.file": str(self.keytab("hdfs")),
            "dfs.datanode.kerberos.principal": _principal("hdfs"),
            "dfs.web.authentication.kerberos.keytab": str(self.keytab("HTTP")),
            "dfs.web.authentication.kerberos.principal": _principal("HTTP"),
            # Set here and not in core-site, so that YARN's pages need no authentication.
            "hadoop.http.authentication.type": "kerberos",
            "hadoop.http.authentication.kerberos.keytab": str(self.keytab("HTTP")),
            "hadoop.http.authentication.kerberos.principal": _principal("HTTP"),
            "hadoop.http.filter.initializers": "org.apache.hadoop.hdfs.web.AuthFilterInitializer",
            "dfs.namenode.delegation.token.renew-interval": str(self._token_ms),
            "dfs.namenode.delegation.token.max-lifetime": str(self._token_ms * 3 // 2),
            "dfs.block.access.token.enable": "true",
            "dfs.data.transfer.protection": "authentication",
            "ignore.secure.ports.for.testing": "true",
        }
        yarn = login("yarn.resourcemanager", "yarn") | login("yarn.nodemanager", "yarn")
        # A secure NodeManager can read logs only with Hadoop's native library, which no jar
        # contains.
        yarn["yarn.log-aggregation-enable"] = "false"
        core = {"hadoop.security.authentication": "kerberos"}
        return {"core-site": core, "hdfs-site": hdfs, "yarn-site": yarn}

    def _before_daemons(self) -> None:
        """Creates the realm and starts its KDC."""
        self.krb5.mkdir()
        names = {"realm": REALM, "host": HOST, "port": self._port, "folder": self.krb5}
        for file, text in (("krb5.conf", _CLIENTS), ("kdc.conf", _KDC)):
            (self.krb5 / file).write_text(text.format(**names), encoding="utf-8")
        self._tool("kdb5_util", "create", "-s", "-W", "-P", "secret", "-r", REALM)
        principals = {service: _principal(service) for service in _SERVICES}
        orders = []
        for name, principal in {**principals, USER: f"{USER}@{REALM}"}.items():
            orders.append(f"addprinc -randkey {principal}")
            orders.append(f"ktadd -k {self.keytab(name)} {principal}")
        self._tool("kadmin.local", "-r", REALM, text="\n".join(orders) + "\n")
        self._spawn("kdc", [self._program("krb5kdc"), "-n", "-r", REALM], self._variables())
        self._wait_for_kdc()

    def _wait_for_kdc(self) -> None:
        deadline = time.monotonic() + _KDC_S
        while True:
            try:
                self.tickets()
                return
            except RuntimeError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)

    def _variables(self) -> dict[str, str]:
        return {
            **os.environ,
            "KRB5_CONFIG": f"{self.krb5}/krb5.conf",
            "KRB5_KDC_PROFILE": f"{self.krb5}/kdc.conf",
        }

    def _program(self, name: str) -> str:
        found = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin")
        assert found is not None, f"{name} is not installed"
        return found

    def _tool(self, name: str, *arguments: str, text: str = "") -> None:
        done = subprocess.run(
            [self._program(name), *arguments],
            env=self._variables(), input=text, capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"{name}: {done.stdout}{done.stderr}")
