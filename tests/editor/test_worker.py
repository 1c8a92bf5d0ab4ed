"""The thread that checks texts: what it has to do, it counts from the moment that it is asked."""

from __future__ import annotations

import asyncio
import threading

from texpr.editor.server.worker import Worker, tell


def test_a_job_that_waits_keeps_a_worker_busy() -> None:
    worker = Worker()
    assert not worker.busy
    worker.put("a", lambda is_old: None)
    assert worker.busy
    worker.drop("a")
    assert not worker.busy


def test_a_job_under_way_keeps_a_worker_busy_though_it_is_dropped() -> None:
    worker, begun, going_on, next_begun = Worker(), threading.Event(), threading.Event(), threading.Event()
    asked: list[bool] = []

    def job(is_old: object) -> None:
        begun.set()
        going_on.wait(60)
        assert callable(is_old)
        asked.append(bool(is_old()))

    worker.put("a", job)
    worker.start()
    assert begun.wait(60)
    worker.drop("a")
    assert worker.busy
    worker.put("b", lambda is_old: next_begun.set())
    going_on.set()
    assert next_begun.wait(60)
    assert asked == [True]


def test_what_is_over_behind_the_farewell_is_told_to_nobody() -> None:
    loop, told = asyncio.new_event_loop(), list[int]()
    tell(loop, told.append, 1)
    loop.call_soon(loop.stop)
    loop.run_forever()
    loop.close()
    tell(loop, told.append, 2)
    assert told == [1]
