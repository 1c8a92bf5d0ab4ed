"""Random stages over a row, shared out over blocks of a cluster in random ways: right in every order, and proved."""

from __future__ import annotations

from random import Random

import pytest
from tests.lowering.clustered import blocked, in_turns
from tests.schedule.laid import integers, laid, wrong

from texpr.emulator import LOCKSTEP
from texpr.ir import kernel as k
from texpr.isa.levels import Space
from texpr.proof.plan import Verdict
from texpr.proof.search import proved

SHORT, LONG = 12, 120
ORDERS = (None, LOCKSTEP, 0, 1)


def drawn(seed: int) -> tuple[str, str, int]:
    """A program, a schedule for it, and how long its row is."""
    random = Random(seed)
    n, stages = random.choice([1, 2, 5, 31, 33, 64, 97, 130]), random.randint(2, 4)
    lines, loops = list[str](), list[str]()
    for stage in range(1, stages + 1):
        i = f"i{stage}"
        loops.append(i)
        other = f"v{random.randrange(stage)}[{_index(random, i, n)}]"
        again = f"par {n} |{i}| {{ v{stage}[{i}] = v{stage - 1}[{_index(random, i, n)}] + {other} }}"
        lines.append(f"new v{stage}: f32[{n}]")
        if random.random() < 0.3:
            lines += [f"par {n} |{i}z| {{ v{stage}[{i}z] = 1.0 }}", f"seq T |t{stage}| {{", "    " + again]
            lines += [f"    par {n} |{i}w| {{ v{stage - 1}[{i}w] = v{stage}[{_index(random, i + 'w', n)}] }}", "}"]
            loops += [f"{i}z", f"{i}w"]
        else:
            lines.append(again)
        if random.random() < 0.4:
            lines += [f"new s{stage}: f32 = 0.0", f"par {n} |{i}r| reduce(s{stage}) {{ s{stage} += v{stage}[{i}r] }}"]
            lines.append(f"par {n} |{i}a| {{ v{stage}[{i}a] = v{stage}[{i}a] - s{stage} }}")
            loops += [f"{i}r", f"{i}a"]
    body = "\n        ".join(lines)
    text = f"""
fn chain(x: f32[M, {n}], w: f32[T]): f32[M, {n}] {{
    new y: f32[M, {n}]
    par M |r| {{
        new v0: f32[{n}]
        par {n} |i0| {{ v0[i0] = x[r, i0] }}
        {body}
        par {n} |o| {{ y[r, o] = v{stages}[{_index(random, "o", n)}] }}
    }}
    return y
}}"""
    return text, _schedule(random, [*loops, "i0", "o"], n), n


def _index(random: Random, i: str, n: int) -> str:
    far = random.randrange(n)
    return random.choice([i, i, f"{n - 1} - {i}", f"({i} + {far}) % {n}", f"max({i} - 1, 0)", f"min({i} + {far}, {n - 1})"])


def _schedule(random: Random, loops: list[str], n: int) -> str:
    """The same for most loops; other parts, or none, for some."""
    blocks = random.randint(2, 8)
    usual = random.choice([blocked, in_turns])
    found: list[str] = []
    for loop in loops:
        way = random.random()
        if way < 0.6:
            found.append(blocked(-(-n // blocks), loop) if usual is blocked else in_turns(blocks, loop))
        elif way < 0.75:
            found.append(blocked(-(-n // random.randint(1, 8)), loop))
    return "\n".join(found or [in_turns(blocks, loops[0])])


def compare(seeds: range) -> None:
    clustered = 0
    for seed in seeds:
        text, schedule, n = drawn(seed)
        made = laid(text, schedule)
        clustered += any(a.space is Space.CLUSTER for kernel in k.kernels(made.plan.steps) for a in kernel.arrays)
        for rows, times in ((2, 2), (1, 0)):
            arrays, sizes = {"x": integers(rows, n), "w": integers(times)}, {"M": rows, "T": times}
            assert wrong(made, arrays, sizes, ORDERS) is None, (seed, rows, times)
        left = [o for o in proved(made.function, made.plan).obligations if o.verdict is not Verdict.PROVED]
        assert not left, (seed, str(left[0]))
    assert clustered * 2 > len(seeds)


def test_few() -> None:
    compare(range(SHORT))


@pytest.mark.long
@pytest.mark.parametrize("start", range(SHORT, SHORT + LONG, 20))
def test_many(start: int) -> None:
    compare(range(start, start + 20))
