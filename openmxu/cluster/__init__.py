"""Work spread over processes of this machine or over a cluster: the results are the same on any number of workers."""

from openmxu.cluster.arguments import add_worker_options, chosen_workers
from openmxu.cluster.workers import Workers, WorkersError, has_cluster, open_workers, usable_cores

__all__ = [
    "Workers",
    "WorkersError",
    "add_worker_options",
    "chosen_workers",
    "has_cluster",
    "open_workers",
    "usable_cores",
]
