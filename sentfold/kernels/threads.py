"""Executors for work in the calling thread or in a pool of threads, and the limit of BLAS to one thread."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Any

from threadpoolctl import ThreadpoolController


class Caller(Executor):
    """An executor that runs each submitted call immediately, in the calling thread.

    Memory that a pool's thread frees stays reserved for that thread; memory that the caller frees can be used by
    the next step.
    """

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **settings: Any) -> Future[Any]:
        """The future of the finished call; an exception of the call is raised here."""
        done: Future[Any] = Future()
        done.set_result(function(*arguments, **settings))
        return done


def pool_of(workers: int) -> Executor:
    """An executor with `workers` threads; for one worker, the calling thread."""
    return ThreadPoolExecutor(max_workers=workers) if workers > 1 else Caller()


def one_blas_thread() -> AbstractContextManager[object]:
    """A context in which BLAS uses one thread: more threads add in another order and compete with the pool's threads.

    The loaded libraries are searched once: threadpool_limits would search them at each call, which takes
    milliseconds, and the BLAS of numpy is loaded before the first call.
    """
    limited: AbstractContextManager[object] = _libraries().limit(limits=1, user_api="blas")
    return limited


@lru_cache(maxsize=1)
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()
