"""Derives findings from facts: the requirements of a training, with advice."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from hearth import __version__
from hearth.doctor.cluster import Facts, Survey
from hearth.doctor.findings import Finding

# The wheels' minimum glibc. Open files: enough for two meshes of ranks and for Spark.
LEAST_GLIBC = (2, 28)
LEAST_OPEN_FILES = 4096
LEAST_SCRATCH_MIB = 10 * 1024
LEAST_SHM_MIB = 1024
MOST_CLOCK_S = 60  # Kerberos tolerates up to five minutes
SPARK = ((3, 5), (4, 3))


def judge(survey: Survey) -> list[Finding]:
    """Runs all checks in the table's order; a check without data adds no finding."""
    checks: list[Callable[[Survey], Finding | None]] = [
        spark, executors, python, hearth, packages, glibc, cores_and_memory, open_files, scratch,
        home, user, shared_memory, driver_address, between_executors, ports, clock, file_system,
        gpus,
    ]  # fmt: skip
    if not survey.executors:  # no executor answered: only check what may be the reason
        checks = [spark, executors, file_system]
    return [found for check in checks if (found := check(survey)) is not None]


def spark(survey: Survey) -> Finding:
    """Checks the versions of Spark and of the Java that it runs on."""
    facts = survey.spark
    version = tuple(map(int, facts["version"].split(".")[:2]))
    text = f"Spark {facts['version']}, master {facts['master']}"
    if java := facts.get("java"):
        text += f", Java {java}"
    if SPARK[0] <= version <= SPARK[1]:
        return Finding("Spark", text)
    tried = " to ".join(".".join(map(str, each)) for each in SPARK)
    return Finding("Spark", text, "warning", f"Hearth is tested with Spark {tried}")


def executors(survey: Survey) -> Finding:
    """Reports the executors that answered, and their hosts."""
    if problem := survey.spark.get("executors_problem"):
        return Finding("executors", problem, "problem")
    hosts = sorted({facts["host"] for facts in survey.executors})
    count = len(survey.executors)
    return Finding("executors", f"{count}, on {_listed(hosts)}")


def python(survey: Survey) -> Finding | None:
    """Checks that all executors run the driver's Python version."""
    own = survey.driver["python"]
    others = _by_value(survey, lambda facts: facts["python"])
    if all(value.split(".")[:2] == own.split(".")[:2] for value in others):
        return Finding("Python", f"{own} at the driver, {_with_hosts(others)}")
    advice = f"set PYSPARK_PYTHON (spark.pyspark.python) to a Python {own} on every host"
    return Finding("Python", f"{own} at the driver, {_with_hosts(others)}", "problem", advice)


def hearth(survey: Survey) -> Finding | None:
    """Checks that all executors can load the driver's version of Hearth."""
    own = survey.driver["hearth"] or __version__
    others = _by_value(survey, lambda facts: facts["hearth"] or "missing")
    broken = _by_value(survey, lambda facts: facts["hearth"] and facts["native"])
    text = f"{own} at the driver, {_with_hosts(others)}"
    if set(others) - {own}:
        advice = (
            f"install hearth-spark {own} in {_interpreters(survey)} of every host, or ship it "
            "by `hearth pack`"
        )
        return Finding("hearth", text, "problem", advice)
    if any(broken):
        advice = "install the wheel made for this Python and platform, or build it there"
        return Finding("hearth", f"{text}; {_with_hosts(broken)}", "problem", advice)
    return Finding("hearth", text)


def packages(survey: Survey) -> Finding | None:
    """Checks that packages have the driver's versions on all executors."""
    own = survey.driver["packages"]
    differing = []
    for name, version in own.items():
        others = _by_value(survey, lambda facts, name=name: facts["packages"][name] or "missing")
        if version is not None and set(others) - {version}:
            differing.append(f"{name}: {version} at the driver, {_with_hosts(others)}")
    if differing:
        advice = (
            "install the same versions on all hosts: values pickled at the driver are loaded there"
        )
        return Finding("packages", "; ".join(differing), "warning", advice)
    there = ", ".join(f"{name} {version}" for name, version in own.items() if version)
    return Finding("packages", f"the same everywhere: {there}")


def glibc(survey: Survey) -> Finding | None:
    """Checks that the C library is new enough for the wheel."""
    found = _by_value(survey, lambda facts: facts["glibc"] or "another C library")
    if all(_is_at_least(value, LEAST_GLIBC) for value in found):
        return Finding("glibc", _with_hosts(found))
    least = ".".join(map(str, LEAST_GLIBC))
    advice = f"the wheel needs glibc {least}: use an image of a newer system, or build Hearth there"
    return Finding("glibc", _with_hosts(found), "problem", advice)


def cores_and_memory(survey: Survey) -> Finding | None:
    """Reports cores, memory and architecture of all hosts."""
    found = _by_value(
        survey, lambda f: f"{f['cores']} cores, {f['memory_gib']} GiB, {f['machine']}"
    )
    return Finding("cores and memory", _with_hosts(found))


def open_files(survey: Survey) -> Finding | None:
    """Checks the limit of open files."""
    few = _by_value(
        survey, lambda facts: facts["open_files"], lambda limit: limit < LEAST_OPEN_FILES
    )
    if not few:
        return Finding("open files", f"at least {LEAST_OPEN_FILES} everywhere")
    advice = f"raise the limit of the executors' user: ulimit -n {LEAST_OPEN_FILES * 16}"
    return Finding("open files", f"limit {_with_hosts(few)}", "warning", advice)


def scratch(survey: Survey) -> Finding | None:
    """Checks the folders for spooled rows."""
    broken, small = {}, {}
    for facts in survey.executors:
        for folder, about in facts["folders"].items():
            text = f"{folder} of {facts['host']}"
            if about["problem"]:
                broken[text] = about["problem"]
            elif about["free_mib"] is not None and about["free_mib"] < LEAST_SCRATCH_MIB:
                small[text] = f"{about['free_mib'] / 1024:.1f} GiB free"
    advice = "set spark.local.dir (YARN: its own folders) to a disk with space for a rank's rows"
    if broken:
        text = _listed(f"{name}: {why}" for name, why in broken.items())
        return Finding("local folders", text, "problem", advice)
    if small:
        text = _listed(f"{name}: {free}" for name, free in small.items())
        return Finding("local folders", text, "warning", advice)
    return Finding("local folders", f"writable, at least {LEAST_SCRATCH_MIB // 1024} GiB free")


def home(survey: Survey) -> Finding | None:
    """Checks that the home folder can be written."""
    found = _by_value(survey, lambda facts: facts["home"], bool)
    if not found:
        return Finding("home folder", "writable")
    advice = (
        "set spark.executorEnv.HOME to a writable folder: PyTorch, Keras and "
        "HuggingFace store caches there"
    )
    return Finding("home folder", _with_hosts(found), "warning", advice)


def user(survey: Survey) -> Finding | None:
    """Checks that the user has a name; in a container, /etc/passwd may not list the user."""
    nameless = _by_value(survey, lambda facts: facts["user_problem"], bool)
    if not nameless:
        return None
    advice = (
        "add the user to it, in the image or by a mounted file: Spark's encryption and "
        "Hadoop's login fail otherwise (Invalid UID)"
    )
    return Finding("user", _with_hosts(nameless), "warning", advice)


def shared_memory(survey: Survey) -> Finding | None:
    """Checks that processes can share memory by memfd_create."""
    none = _by_value(survey, lambda facts: facts["memfd"], bool)
    if none:
        advice = (
            "allow memfd_create in the container's seccomp profile: ranks of a host share memory"
        )
        return Finding("shared memory", _with_hosts(none), "problem", advice)
    small = _by_value(
        survey, lambda f: f["shm_mib"], lambda mib: mib is None or mib < LEAST_SHM_MIB
    )
    if small:
        found = f"anonymous memory works; free MiB of /dev/shm: {_with_hosts(small)}"
        advice = (
            "enough for Hearth; workers of a torch DataLoader need more: --shm-size, or an "
            "emptyDir of medium Memory at /dev/shm"
        )
        return Finding("shared memory", found, "warning", advice)
    return Finding("shared memory", f"anonymous, and at least {LEAST_SHM_MIB} MiB of /dev/shm")


def driver_address(survey: Survey) -> Finding | None:
    """Checks that the executors can connect to the driver."""
    if survey.spark.get("listen_problem"):
        advice = "free the ports, or name others by spark.hearth.coordinator.port"
        return Finding("driver's address", survey.spark["listen_problem"], "problem", advice)
    host, port = survey.spark["clock"]
    lost = _by_value(survey, lambda facts: facts["driver_problem"], bool)
    if not lost:
        return Finding("driver's address", f"executors reach {host}:{port}")
    text = f"{host}:{port}: {_with_hosts(lost)}"
    if survey.spark.get("connect"):
        advice = (
            "TorchCluster, TorchEstimator and cluster.run() need a connection from executors to "
            "this client: set TFOS_SERVER_HOST to an address of it that they reach, and open the "
            "firewall for spark.hearth.coordinator.port; other calls work without it"
        )
        return Finding("driver's address", text, "warning", advice)
    advice = (
        "set spark.driver.host to an address that executors reach, and open the firewall for "
        "spark.hearth.coordinator.port (a range, as 7300-7320)"
    )
    return Finding("driver's address", text, "problem", advice)


def between_executors(survey: Survey) -> Finding | None:
    """Checks that the executors can connect to each other."""
    taken = _by_value(survey, lambda facts: facts["mesh_problem"], bool)
    if taken:
        advice = "free the ports, or name others by spark.hearth.mesh.port"
        return Finding("between executors", _with_hosts(taken), "problem", advice)
    lost = [
        f"{facts['host']} to {peer}: {why}"
        for facts in survey.executors
        for peer, why in facts["unreachable"].items()
    ]
    if lost:
        advice = (
            "gradients travel between executors directly: set spark.hearth.mesh.port (a range, as "
            "7400-7499) and open the firewall for it"
        )
        return Finding("between executors", _listed(lost), "problem", advice)
    if len(survey.executors) < 2:
        return None
    return Finding("between executors", "they reach each other")


def ports(survey: Survey) -> Finding | None:
    """Checks the ports of nodes, if they are configured."""
    taken: dict[str, list[str]] = {}
    for facts in survey.executors:
        for setting, why in facts["port_problems"].items():
            taken.setdefault(f"{setting}: {why}", []).append(facts["host"])
    if not taken:
        return None
    advice = "free the ports, or set a wider range: each node of a host uses one"
    text = "; ".join(f"{what} at {_listed(hosts)}" for what, hosts in taken.items())
    return Finding("ports", text, "problem", advice)


def clock(survey: Survey) -> Finding | None:
    """Checks that the hosts' clocks agree."""
    found = {
        facts["host"]: facts["clock_ahead_s"]
        for facts in survey.executors
        if facts["clock_ahead_s"] is not None
    }
    if not found:
        return None
    worst = max(found, key=lambda host: abs(found[host]))
    text = f"{worst} differs most from the driver: {found[worst]:+.1f} s"
    if abs(found[worst]) <= MOST_CLOCK_S:
        return Finding("clocks", text)
    advice = "run chrony or another NTP client on all hosts: Kerberos refuses tickets at 300 s"
    return Finding("clocks", text, "problem" if survey.spark.get("kerberos") else "warning", advice)


def file_system(survey: Survey) -> Finding | None:
    """Reports the default file system and whether it requires Kerberos."""
    uri = survey.spark.get("file_system")
    if not uri:
        return None
    text = f"{uri}{', with Kerberos' if survey.spark['kerberos'] else ''}"
    if problem := survey.spark["file_system_problem"]:
        advice = "check fs.defaultFS, and with Kerberos `klist`: kinit, or --principal and --keytab"
        return Finding("default file system", f"{text}: {problem}", "problem", advice)
    return Finding("default file system", f"{text}: its root can be read")


def gpus(survey: Survey) -> Finding | None:
    """Compares the GPUs that Spark assigns to a task with the GPUs that the tasks see."""
    asked = survey.spark["gpus_of_a_task"]
    found = _by_value(survey, lambda facts: _gpu_text(facts["gpus"]))
    broken = _by_value(survey, lambda facts: _gpu_problem(facts["gpus"]), bool)
    if broken:
        advice = "install the NVIDIA driver, and a torch built for a CUDA version that it supports"
        return Finding("GPUs", _with_hosts(broken), "problem", advice)
    if not any(facts["gpus"] for facts in survey.executors):
        if asked:
            advice = (
                "nvidia-smi is not on the executors' PATH: install the driver, or drop the setting"
            )
            return Finding("GPUs", f"none, but each task asks for {asked}", "problem", advice)
        return Finding("GPUs", "none")
    if not asked:
        advice = (
            "set spark.executor.resource.gpu.amount and spark.hearth.task.resource.gpu.amount, so "
            "that each rank gets dedicated GPUs (docs/cluster.md)"
        )
        return Finding("GPUs", _with_hosts(found), "warning", advice)
    return Finding("GPUs", f"{_with_hosts(found)}; {asked} per task")


def _gpu_text(gpus: Any) -> str:
    if not gpus:
        return "none"
    names = gpus["names"]
    return f"{len(names)} x {names[0]}, driver {gpus['driver']}" if names else gpus["problem"]


def _gpu_problem(gpus: Any) -> str | None:
    return (gpus["problem"] or gpus["torch"]) if gpus else None


def _by_value(
    survey: Survey, of: Callable[[Facts], Any], wanted: Callable[[Any], bool] = lambda value: True
) -> dict[Any, list[str]]:
    """The executors' values that satisfy a condition, with the hosts that have them."""
    found: dict[Any, list[str]] = {}
    for facts in survey.executors:
        if wanted(value := of(facts)):
            hosts = found.setdefault(value, [])
            if facts["host"] not in hosts:
                hosts.append(facts["host"])
    return found


def _with_hosts(found: dict[Any, list[str]]) -> str:
    """Formats values, with their hosts if there are several values."""
    if len(found) == 1:
        return f"{next(iter(found))} at all executors"
    return "; ".join(f"{value} at {_listed(hosts)}" for value, hosts in found.items())


def _listed(names: Iterable[str], most: int = 5) -> str:
    names = list(names)
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _interpreters(survey: Survey) -> str:
    return _listed(sorted({facts["interpreter"] for facts in survey.executors}), 2)


def _is_at_least(version: str, least: tuple[int, int]) -> bool:
    numbers = version.split(".")[:2]
    return all(each.isdigit() for each in numbers) and tuple(map(int, numbers)) >= least
