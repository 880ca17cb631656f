"""OrbitKV for Python engines: the Java client in the process, behind typed Python classes.

Connect with `CacheManagerClient`, register KV tensors (`Registration`), look prefixes up with `BlockHashes`, restore
them with the leases of `QueryReady`, and save blocks. Importing the package starts nothing.
"""

from orbitkv.client import CacheManagerClient, Connection, Health, PublishActivity
from orbitkv.errors import (
    BindingChangedError,
    InvalidRequestError,
    JvmError,
    LeaseEndedError,
    LimitError,
    ManagerUnavailableError,
    OrbitKVError,
    OrbitKVInternal,
    OrbitKVTimeoutError,
    SaveNotSubmittedError,
)
from orbitkv.fence import Fence
from orbitkv.handles import RestoreHandle, RestoreItem, RestoreStatus, SaveHandle, SaveItem, SaveStatus
from orbitkv.hashes import BlockHashes
from orbitkv.layouts import LAYOUTS, Layout, layout_of
from orbitkv.query import Lease, QueryLoading, QueryMiss, QueryReady, QueryResult
from orbitkv.registration import Registration
from orbitkv.state import GroupState, StateDescriptor
from orbitkv.tensors import HostTensor, StorageLike, TensorLike

__all__ = [
    "LAYOUTS",
    "BindingChangedError",
    "BlockHashes",
    "CacheManagerClient",
    "Connection",
    "Fence",
    "GroupState",
    "Health",
    "HostTensor",
    "InvalidRequestError",
    "JvmError",
    "Layout",
    "Lease",
    "LeaseEndedError",
    "LimitError",
    "ManagerUnavailableError",
    "OrbitKVError",
    "OrbitKVInternal",
    "OrbitKVTimeoutError",
    "PublishActivity",
    "QueryLoading",
    "QueryMiss",
    "QueryReady",
    "QueryResult",
    "Registration",
    "RestoreHandle",
    "RestoreItem",
    "RestoreStatus",
    "SaveHandle",
    "SaveItem",
    "SaveNotSubmittedError",
    "SaveStatus",
    "StateDescriptor",
    "StorageLike",
    "TensorLike",
    "layout_of",
]
