"""Threads: work in the caller or in a pool of threads, with BLAS on one thread in both cases."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Any

from threadpoolctl import ThreadpoolController


class Caller(Executor):
    """Runs what is submitted at once, in the thread that submits it.

    A thread's freed memory stays its own; what the caller frees, the next step can use.
    """

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **settings: Any) -> Future[Any]:
        """The finished call; what it raised, it raises here."""
        done: Future[Any] = Future()
        done.set_result(function(*arguments, **settings))
        return done


def pool_of(workers: int) -> Executor:
    """An executor of so many threads; for one, the caller's own."""
    return ThreadPoolExecutor(max_workers=workers) if workers > 1 else Caller()


def one_blas_thread() -> AbstractContextManager[object]:
    """numpy's BLAS on one thread: several would add in another order, and contend with a pool's.

    threadpool_limits searches the loaded libraries each time, for milliseconds; numpy's is there from the start.
    """
    limited: AbstractContextManager[object] = _libraries().limit(limits=1, user_api="blas")
    return limited


@lru_cache(maxsize=1)
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()
