"""Collects facts of one machine and its Python, with only the standard library.

Executors execute this file's text, so it works even if hearth or its dependencies are missing
there. No function raises; unknown values are None or a text with the reason.
"""

import importlib
import importlib.metadata
import os
import platform
import pwd
import resource
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time

PACKAGES = ("numpy", "pyarrow", "pandas", "torch", "tensorflow", "keras", "onednn-cpu-gomp")
TIMEOUT_S = 5


def facts() -> dict:
    """The facts of this process, serializable as JSON."""
    return {
        "host": socket.gethostname(),
        "python": ".".join(map(str, sys.version_info[:3])),
        "interpreter": sys.executable,
        "hearth": version_of("hearth-spark") or module_version("hearth"),
        "native": import_problem("hearth.native._core"),
        "packages": {name: version_of(name) for name in PACKAGES},
        "glibc": platform.libc_ver()[1] or None,
        "machine": platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": memory_gib(),
        "open_files": resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        "memfd": memfd_problem(),
        "shm_mib": free_mib("/dev/shm"),
        "folders": {folder: folder_facts(folder) for folder in scratch_folders()},
        "home": home_problem(),
        "user_problem": user_problem(),
        "gpus": gpus(),
    }


def version_of(package):
    """The installed version of a package; None if it is not installed."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def module_version(name):
    """The version of Hearth in a checkout or an archive, neither of which has package metadata."""
    try:
        return importlib.import_module(name).__version__
    except Exception:
        return None


def import_problem(module):
    """Why a module cannot be imported; None if it can."""
    try:
        importlib.import_module(module)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def memory_gib():
    """The machine's memory, or this process's cgroup limit if that is lower."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for file in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            with open(file) as source:
                limits.append(int(source.read()))
        except (OSError, ValueError):  # no such file, or "max"
            continue
    return round(min(limits) / 2**30, 1)


def memfd_problem():
    """Why memory cannot be shared between processes without /dev/shm; None if it can."""
    try:
        os.close(os.memfd_create("hearth-doctor"))
    except (OSError, AttributeError) as error:
        return str(error)
    return None


def free_mib(folder):
    """Free space of a folder's disk in MiB; None if there is no such folder."""
    try:
        return shutil.disk_usage(folder).free // 2**20
    except OSError:
        return None


def scratch_folders():
    """The folders on this host to which Spark and Hearth spill rows."""
    named = os.environ.get("LOCAL_DIRS") or os.environ.get("SPARK_LOCAL_DIRS") or ""
    return [each for each in named.split(",") if each] or [tempfile.gettempdir()]


def folder_facts(folder):
    """Facts of a folder for temporary files: whether it can be written, and its free space."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"hearth")
        problem = None
    except OSError as error:
        problem = error.strerror
    return {"free_mib": free_mib(folder), "problem": problem}


def home_problem():
    """Why PyTorch, Keras and HuggingFace cannot cache in the home folder; None if they can."""
    home = os.path.expanduser("~")
    if not os.path.isdir(home):
        return f"{home} does not exist"
    return None if os.access(home, os.W_OK) else f"{home} is not writable"


def user_problem():
    """Why Python cannot find this user's name; None if it can."""
    try:
        pwd.getpwuid(os.getuid())
    except KeyError:
        return f"{os.getuid()} has no name in /etc/passwd"
    return None


def gpus():
    """Names of the GPUs, the GPU driver's version, and whether torch supports the GPUs."""
    if shutil.which("nvidia-smi") is None:
        return None
    command = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S * 4)
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"names": [], "problem": str(error)}
    lines = [line.split(", ") for line in done.stdout.splitlines() if line.strip()]
    if done.returncode or not lines:
        return {"names": [], "problem": (done.stderr or done.stdout).strip()[:200] or "no GPU"}
    found = {"names": [line[0] for line in lines], "driver": lines[0][-1], "problem": None}
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return {**found, "visible": visible, "torch": torch_problem()}


def torch_problem():
    """Why torch cannot be used; None if it can."""
    if version_of("torch") is None:
        return "torch is not installed"
    import torch

    if torch.version.cuda is None:
        return "this torch is built without CUDA"
    return None if torch.cuda.is_available() else "torch.cuda.is_available() is False"


def listen(host, ports):
    """Listens on one of the ports: returns (socket, None), or (None, reason) if all fail."""
    problem = None
    for port in ports:
        try:
            return socket.create_server((host, port)), None
        except OSError as error:
            problem = f"port {port}: {error.strerror}"
    return None, problem


def connect_problem(host, port):
    """Why a connection fails; None if it succeeds."""
    try:
        socket.create_connection((host, port), TIMEOUT_S).close()
    except OSError as error:
        return error.strerror or str(error)
    return None


def towards(host, port):
    """This host's address on the route to another host."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0][0]
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((host, port))
            return probe.getsockname()[0]
    except OSError:
        return "127.0.0.1"


def clock_ahead_s(host, port):
    """Returns (seconds by which this clock is ahead of the other host's, None), or (None,
    reason)."""
    try:
        with socket.create_connection((host, port), TIMEOUT_S) as channel:
            begun = time.time()
            answer = channel.recv(8, socket.MSG_WAITALL)
            ended = time.time()
        return round((begun + ended) / 2 - struct.unpack("!d", answer)[0], 3), None
    except (OSError, struct.error) as error:
        return None, getattr(error, "strerror", None) or "the connection was closed"
