"""Small helpers that programs for TensorFlowOnSpark use."""

from __future__ import annotations

import os
import socket

from hearth.tensorflowonspark import gpu_info


def single_node_env(num_gpus=1, worker_index=-1, nodes=[]):  # noqa: B006 (the API's default)
    """Lets a single process use `num_gpus` GPUs and find Hadoop's classes.

    Args:
        num_gpus: GPUs to use; fewer, or none, where the host has no more.
        worker_index: which block of GPUs, among the processes of this host; negative: any.
        nodes: unused, kept for callers that pass it.
    """
    add_hadoop_classpath()
    if gpu_info.is_gpu_available() and num_gpus > 0:
        chosen = gpu_info.get_gpus(num_gpus, worker_index)
        os.environ["CUDA_VISIBLE_DEVICES"] = str(chosen)
    else:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""


def add_hadoop_classpath() -> None:
    """Puts Hadoop's jars on CLASSPATH once, where HADOOP_PREFIX names an installation."""
    if "HADOOP_PREFIX" not in os.environ or "TFOS_CLASSPATH_UPDATED" in os.environ:
        return
    import subprocess

    hadoop = os.path.join(os.environ["HADOOP_PREFIX"], "bin", "hadoop")
    jars = subprocess.check_output([hadoop, "classpath", "--glob"], text=True).strip()
    os.environ["CLASSPATH"] = os.pathsep.join(filter(None, [os.environ.get("CLASSPATH"), jars]))
    os.environ["TFOS_CLASSPATH_UPDATED"] = "1"


def get_ip_address():
    """This host's address on the interface of its default route; 127.0.0.1 without one."""
    return address_towards("8.8.8.8", 53)


def address_towards(host: str, port: int) -> str:
    """This host's own address on the interface by which it reaches `host`; sends nothing."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0][0]
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((host, port))
            return probe.getsockname()[0]
    except OSError:
        return "127.0.0.1"


def find_in_path(path, file):
    """The first `file` in the folders of `path`, which is written as PATH is; False without one."""
    for folder in path.split(os.pathsep):
        candidate = os.path.join(folder, file)
        if os.path.isfile(candidate):
            return candidate
    return False


def write_executor_id(num):
    """Writes `num` into the file executor_id of the working directory."""
    with open("executor_id", "w", encoding="utf-8") as file:
        file.write(str(num))


def read_executor_id():
    """The number in the file executor_id of the working directory.

    Raises:
        FileNotFoundError: write_executor_id() was not called here.
    """
    if not os.path.isfile("executor_id"):
        raise FileNotFoundError(f"No executor_id file found in {os.getcwd()}")
    with open("executor_id", encoding="utf-8") as file:
        return int(file.read())
