"""Names that every framework's module of hearth.horovod exports."""

from __future__ import annotations

from hearth.horovod.basics import ccl_built as ccl_built
from hearth.horovod.basics import cross_rank as cross_rank
from hearth.horovod.basics import cross_size as cross_size
from hearth.horovod.basics import cuda_built as cuda_built
from hearth.horovod.basics import ddl_built as ddl_built
from hearth.horovod.basics import gloo_built as gloo_built
from hearth.horovod.basics import gloo_enabled as gloo_enabled
from hearth.horovod.basics import init as init
from hearth.horovod.basics import is_homogeneous as is_homogeneous
from hearth.horovod.basics import is_initialized as is_initialized
from hearth.horovod.basics import local_rank as local_rank
from hearth.horovod.basics import local_size as local_size
from hearth.horovod.basics import mpi_built as mpi_built
from hearth.horovod.basics import mpi_enabled as mpi_enabled
from hearth.horovod.basics import mpi_threads_supported as mpi_threads_supported
from hearth.horovod.basics import nccl_built as nccl_built
from hearth.horovod.basics import rank as rank
from hearth.horovod.basics import rocm_built as rocm_built
from hearth.horovod.basics import shutdown as shutdown
from hearth.horovod.basics import size as size
from hearth.horovod.basics import start_timeline as start_timeline
from hearth.horovod.basics import stop_timeline as stop_timeline
from hearth.horovod.calls import barrier as barrier
from hearth.horovod.calls import join as join
from hearth.horovod.errors import HorovodInternalError as HorovodInternalError
from hearth.horovod.process_sets import ProcessSet as ProcessSet
from hearth.horovod.process_sets import add_process_set as add_process_set
from hearth.horovod.process_sets import (
    get_process_set_ids_and_ranks as get_process_set_ids_and_ranks,
)
from hearth.horovod.process_sets import global_process_set as global_process_set
from hearth.horovod.process_sets import remove_process_set as remove_process_set
from hearth.horovod.reductions import Adasum as Adasum
from hearth.horovod.reductions import Average as Average
from hearth.horovod.reductions import Max as Max
from hearth.horovod.reductions import Min as Min
from hearth.horovod.reductions import Product as Product
from hearth.horovod.reductions import Sum as Sum
