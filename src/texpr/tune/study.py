"""Trials in a database, by Optuna, which only this file imports."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeAlias

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from optuna.samplers import BaseSampler, TPESampler
from optuna.trial import FrozenTrial, TrialState
from optuna.trial import Trial as OpenTrial
from sqlalchemy.engine import make_url
from sqlalchemy.exc import IntegrityError, OperationalError, ProgrammingError, SQLAlchemyError

from texpr.support.diagnostic import TexprError, error
from texpr.support.record import Record
from texpr.tune.outcome import FAILED, INTERRUPTED, MEASURED, REFUSED, Outcome, failed
from texpr.tune.space import Dimension, Space

OWNER, OUTCOME, ABOUT = "owner", "outcome", "about"
"""Attributes of trials, the process that runs one and what became of it; of studies, what is searched."""

STATES = {MEASURED: TrialState.COMPLETE, REFUSED: TrialState.PRUNED, FAILED: TrialState.FAIL, INTERRUPTED: TrialState.FAIL}
"""A sampler takes what is pruned for worse than everything else, and disregards what failed."""

_DRIVERS = {"psycopg": "pip install 'texpr-compiler[postgres]'"}
"""How to get drivers that are extras."""

_Distributions: TypeAlias = dict[str, BaseDistribution]


class Trial(Record):
    """A trial that is over: its number, its point, and what became of it."""

    number: int
    point: dict[str, int]
    outcome: Outcome


class _At(BaseSampler):
    """The sampler that wants one point. Optuna's own way, a queue in the storage, is one for all searches that share it, and
    gives what a search left there to the next one."""

    def __init__(self, point: dict[str, int]):
        self._point = point

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> _Distributions:
        """Nothing: each parameter is asked for by itself."""
        return {}

    def sample_relative(self, study: optuna.Study, trial: FrozenTrial, search_space: _Distributions) -> dict[str, Any]:
        """Nothing, likewise."""
        return {}

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """The point's value."""
        return self._point[param_name]


class Study:
    """The trials of one search. Raises TexprError E0842 where its storage cannot be used."""

    def __init__(self, url: str, name: str, space: Space, about: dict[str, Any]):
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self.space, self.name = space, name
        self._begun: dict[int, OpenTrial] = {}
        self._by_name = {each.name: _distribution(each) for each in space.dimensions}
        seed = int.from_bytes(name.encode()[-4:])
        try:
            self.url = make_url(url).render_as_string(hide_password=True)
            storage = _opened(url)
            sampler = TPESampler(seed=seed, constant_liar=True)
            self._study = optuna.create_study(storage=storage, study_name=name, load_if_exists=True, sampler=sampler)
            if ABOUT not in self._study.user_attrs:
                self._study.set_user_attr(ABOUT, about)
            self._again = list(self._left_over())
        except (SQLAlchemyError, ImportError, ValueError, RuntimeError, OSError) as fault:
            raise unusable(fault) from None

    def trials(self) -> list[Trial]:
        """The trials that are over, but for those that were interrupted, and were or will be made again."""
        found = (Trial(each.number, dict(each.params), _outcome(each)) for each in self._study.get_trials(deepcopy=False)
                 if each.state.is_finished())  # fmt: skip
        return [each for each in found if each.outcome.state != INTERRUPTED]

    def again(self) -> dict[str, int] | None:
        """A point whose trial was cut off."""
        return self._again.pop(0) if self._again else None

    def going(self) -> list[dict[str, int]]:
        """The points at which this and other searches are, as far as they have said so."""
        running = self._study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
        return [
            dict(each.params) for each in running if each.params.keys() == self._by_name.keys() and not is_gone(_owner(each))
        ]

    def begin(self, point: dict[str, int] | None) -> tuple[int, dict[str, int]]:
        """A new trial, at `point` or where the sampler wants it: its number and point."""
        whole = self._study.sampler
        try:
            self._study.sampler = whole if point is None else _At(point)
            while True:
                trial = self._study.ask(dict(self._by_name))
                trial.set_user_attr(OWNER, owner())
                self._begun[trial.number] = trial
                if point is None or trial.params == point:
                    return trial.number, dict(trial.params)
                # Somebody, as in a dashboard, asked for this one, and Optuna gives it first.
                self.end(trial.number, Outcome(INTERRUPTED, reason="another point was wanted"))
        finally:
            self._study.sampler = whole

    def end(self, number: int, outcome: Outcome) -> None:
        """Keeps what became of a trial."""
        trial = self._begun.pop(number)
        trial.set_user_attr(OUTCOME, outcome.data)
        self._study.tell(trial, outcome.value, state=STATES[outcome.state])

    def _left_over(self) -> Iterator[dict[str, int]]:
        """Ends the trials of processes of this machine that are no more, and gives their points."""
        for each in self._study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
            if _is_left(each):
                self._begun[each.number] = OpenTrial(self._study, each._trial_id)  # pyright: ignore[reportPrivateUsage]
                self.end(each.number, Outcome(INTERRUPTED, reason="the search was stopped"))
        finished = {_key(each.point) for each in self.trials()}
        for each in self._study.get_trials(deepcopy=False):
            if each.state.is_finished() and _outcome(each).state == INTERRUPTED:
                point = dict(each.params)
                if point.keys() == self._by_name.keys() and _key(point) not in finished:
                    finished.add(_key(point))
                    yield point


def _opened(url: str, tries: int = 5) -> optuna.storages.RDBStorage:
    """The storage at an address; tried again where another search makes its tables just then, which Optuna does not lock."""
    for each in range(tries - 1):
        try:
            return optuna.storages.RDBStorage(url)
        except (IntegrityError, OperationalError, ProgrammingError) as fault:
            if not isinstance(fault, IntegrityError) and "already exists" not in str(fault.orig):
                raise
            time.sleep(0.1 * 2**each)
    return optuna.storages.RDBStorage(url)


def unusable(fault: Exception) -> TexprError:
    """The error for a storage that cannot be used; the address may hold a password, so it is not shown."""
    if isinstance(fault, ImportError) and isinstance(missing := fault.__context__, ModuleNotFoundError):
        return error(
            "E0842",
            None,
            f"the storage of the search needs `{missing.name}`, the driver of its database, which is not installed",
            help=_DRIVERS.get(missing.name or "", "install the driver, or name another one, as in mysql+pymysql://HOST/NAME"),
        )
    text = str(getattr(fault, "orig", None) or fault).splitlines()
    return error(
        "E0842",
        None,
        f"the storage of the search cannot be used: {type(fault).__name__}: {text[0] if text else ''}",
        help="--storage takes an address of SQLAlchemy, such as sqlite:///trials.db or postgresql://HOST/NAME",
    )


def owner() -> str:
    """This process: its machine, its number, and when it began, as numbers are used again."""
    return f"{socket.gethostname()} {os.getpid()} {_began(os.getpid())}"


def is_gone(owner: str) -> bool:
    """Whether a process of this machine is no more; of other machines nobody knows."""
    host, _, rest = owner.partition(" ")
    number, _, began = rest.partition(" ")
    if not number.isdecimal():
        return True  # it was stopped before it could say who it was
    return host == socket.gethostname() and _began(int(number)) != began


def _is_left(trial: FrozenTrial) -> bool:
    """Whether the process of a trial that is not over is no more. One that has just begun has not yet said whose it is."""
    if not _owner(trial) and trial.datetime_start is not None and datetime.now() - trial.datetime_start < timedelta(minutes=1):
        return False
    return is_gone(_owner(trial))


def _owner(trial: FrozenTrial) -> str:
    return trial.user_attrs.get(OWNER, "")


def _began(process: int) -> str:
    """When a process began, in the kernel's ticks; empty where there is none (proc(5), the field `starttime`)."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def _key(point: dict[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(point.items()))


def _distribution(dimension: Dimension) -> BaseDistribution:
    """Candidates are in the order of their modelled cost, which a sampler may use."""
    values = dimension.values
    if dimension.labels and values == tuple(range(len(values))):
        return IntDistribution(0, len(values) - 1)
    return CategoricalDistribution(values)


def _outcome(trial: FrozenTrial) -> Outcome:
    data = trial.user_attrs.get(OUTCOME)
    return failed("its outcome was not kept") if data is None else Outcome(**data)
