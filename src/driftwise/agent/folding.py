"""Learn a log: its rewards in the order they were learned, by the live kernel (docs/contract.md#logs).

Rewards are learned on a copy of the state, which is published after the last one, so a log with a bad row changes
nothing. Rewards that were already learned are skipped. A snapshot and the log since therefore give the agent that wrote
both. Two agents are merged here too: their weighted sums and atoms, brought to one tick, are added.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from driftwise._internal.progress import bar
from driftwise.agent.drift import RECENT
from driftwise.agent.record import Entry
from driftwise.agent.states import start_clock
from driftwise.errors import BadInput
from driftwise.ledger import LESSONS, Verdict
from driftwise.policies.arms import NORM_SLACK, ArmSet
from driftwise.policies.own import Lent
from driftwise.policies.vetting import LATEST
from driftwise.tables.check import Checker
from driftwise.tables.logs import Log, read_log
from driftwise.tables.schema import UNLEARNED, Batch, Ints

if TYPE_CHECKING:
    from driftwise.agent.parts import AgentParts, Lineage

# Rounds in a row that may be missing from the log of a policy that counts them, if gaps are allowed.
_MOST_MISSED = 10_000

# A progress bar is shown for more rows than these.
_SHORT = 1e5

_NEEDED = ("x", "reward", "reward_seq", "reward_tick", "born")


@dataclass
class _Progress:
    """The progress of learning a log, and what is entered in the book at its end."""

    state: Any
    meter: Any
    tick: int
    zero: int | None  # the tick from which the state counts; None before the first lesson
    number: int  # of the last lesson learned
    seq: int = 0
    verdicts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(LESSONS, 0))
    closed: list[tuple[str, str, float]] = field(default_factory=list)
    quiet: dict[str, int] = field(default_factory=dict)  # decisions that closed without a lesson


def learn_log(parts: AgentParts, source: Any, gaps: bool, progress: bool | None) -> int:
    """See `Agent.learn_log`."""
    if parts.book.log is not None:
        raise BadInput("log", "an agent that writes a log", "one that does not, while it learns", "close its log first")
    log, policy = read_log(source), parts.policy
    log.require(_NEEDED, "without which nothing can be learned from it")
    if policy.taught_with_arms:
        log.require(["arms", "arm"], "because a policy of your own is taught with all arms")
    elif log.dim not in (None, policy.dim):
        raise BadInput("log", f"vectors of {log.dim} numbers", f"{policy.dim} numbers, as the policy has", "match them")
    with parts.turn(parts.learning), parts.busy:
        counts = parts.book.counts
        done = counts["learned"] + counts["defaulted"]
        states = parts.states
        at = _Progress(states.front.copy(), copy.deepcopy(parts.meter), states.tick, states.zero, done)
        # Counting the rows of JSON lines reads the file once more, so it is done only if a bar was asked for.
        total = 0 if progress is False else log.rows
        with bar("rows", total, progress, least=_SHORT) as tick:
            checker = Checker(log)
            for batch in log.batches(_columns(parts, log)):
                checker.check(batch)
                _batch(parts, batch, at, gaps)
                tick(batch.rows)
            checker.end()
        lineage = parts.lineage.copy()
        if policy.adds_up:  # other policies cannot be merged and need no lineage
            lineage.learned([part.digest() for part in log.parts], [part.origin for part in log.parts])

        _publish(parts, at, lineage)
    return at.number - done if not gaps else sum(at.verdicts.values())


def _columns(parts: AgentParts, log: Log) -> list[str]:
    """The columns to read. Ids are read only if decisions are open."""
    more = ["seq", "stream", "verdict"]
    if parts.book.open:
        log.require(["decision_id"], "because decisions are open that it may close")
        more.append("decision_id")
    if parts.policy.taught_with_arms:
        more += ["arms", "arm"]
    return [*_NEEDED, *(name for name in more if name in log.columns)]


def _batch(parts: AgentParts, batch: Batch, at: _Progress, gaps: bool) -> None:
    """The rewards of a batch, checked and learned."""
    reward, number, tick, born = batch.reward, batch.reward_seq, batch.reward_tick, batch.born
    assert reward is not None and number is not None and tick is not None and born is not None
    lessons = np.flatnonzero(~np.isnan(reward))
    _check_gaps(batch, lessons, number[lessons], at, gaps)
    fresh = lessons[number[lessons] > at.number]
    _quiet(parts, batch, np.flatnonzero(np.isnan(reward)), at)
    if parts.alone:
        _one_at_a_time(parts, batch, at, gaps)
    elif fresh.size:
        _check(parts, batch, fresh, at)
        _learn(parts, batch, fresh, at)
    if fresh.size:
        at.number = int(number[fresh[-1]])
        _count(batch, fresh, at)
    if batch.seq is not None and batch.rows:
        at.seq = max(at.seq, int(batch.seq.max()))
        if at.seq > LATEST // 2:  # decisions are counted on from here, in a state as ticks
            row = int(np.argmax(batch.seq))
            raise batch.bad(row, "seq", at.seq, "a number of at most 2^52")


def _count(batch: Batch, rows: Ints, at: _Progress) -> None:
    """Count the verdicts of the decisions that were learned from."""
    kinds = np.full(batch.rows, "learned", dtype=object)
    if batch.verdict is not None:
        kinds = np.asarray(batch.verdict, dtype=object)
    found = {kind: kinds[rows] == kind for kind in LESSONS}
    unknown = ~np.logical_or.reduce(list(found.values()))
    if unknown.any():
        row = int(rows[np.argmax(unknown)])
        raise batch.bad(row, "verdict", str(kinds[row]), "learned or defaulted where there is a reward")
    for kind, those in found.items():
        at.verdicts[kind] += int(those.sum())
    if batch.decision_id is not None and batch.reward is not None:
        at.closed += [(batch.decision_id[row], kinds[row], float(batch.reward[row])) for row in rows.tolist()]


def _check_gaps(batch: Batch, lessons: Ints, numbers: Ints, at: _Progress, gaps: bool) -> None:
    """Check that rewards continue those of the agent."""
    ahead = numbers[numbers > at.number]
    if gaps or not ahead.size:
        return
    missing = np.diff(ahead, prepend=at.number) != 1
    if missing.any():
        number = int(ahead[np.argmax(missing)])
        row = int(lessons[numbers == number][0])
        wanted = "every learned reward, in a row from the last one of this agent"
        raise batch.bad(row, "reward_seq", number, wanted, "pass gaps=True to learn what is there")


def _check(parts: AgentParts, batch: Batch, rows: Ints, at: _Progress) -> None:
    """Refuse rows that a live agent would have refused."""
    assert batch.reward is not None and batch.reward_tick is not None and batch.born is not None
    reward, tick, born = batch.reward[rows], batch.reward_tick[rows], batch.born[rows]
    (low, high, *_), reach = parts.terms, parts.policy.reach
    limits = (
        ("reward", reward, (reward >= low) & (reward <= high), f"a reward from {low:g} to {high:g}"),
        ("reward_tick", tick, np.diff(tick, prepend=at.tick) >= 0, f"ticks that never fall, from {at.tick} on"),
        ("reward_tick", tick, tick <= LATEST, "a tick below 2^53"),
        ("born", born, (born <= tick) & (born >= -LATEST), "a tick up to that of its reward"),
    )
    for column, values, good, wanted in limits:
        if not good.all():
            place = int(np.argmin(good))
            raise batch.bad(int(rows[place]), column, values[place].item(), wanted)
    if batch.x is not None and not parts.policy.taught_with_arms:
        x = batch.x[rows] if rows.size < batch.rows else batch.x
        norms = np.sqrt((x * x).sum(axis=1))
        if not norms.max() <= reach * (1.0 + NORM_SLACK):
            place = int(np.argmax(norms))
            got = f"a vector of norm {norms[place]:.6g}"
            raise batch.bad(int(rows[place]), "x", got, f"norms of at most L = {reach:g}", "pass a larger L")


def _learn(parts: AgentParts, batch: Batch, rows: Ints, at: _Progress) -> None:
    """Learn checked rewards: in one call if the policy takes many, otherwise one after the other."""
    assert batch.reward is not None and batch.reward_tick is not None and batch.born is not None
    policy = parts.policy
    reward, tick, born = batch.reward[rows], batch.reward_tick[rows], batch.born[rows]
    if at.zero is None:
        at.zero = at.tick = int(born[0])
        start_clock(policy, at.state, at.zero)
    ticks, ages = np.diff(tick, prepend=at.tick).astype(np.float64), (tick - born).astype(np.float64)
    at.tick = int(tick[-1])
    if policy.folds:
        assert batch.x is not None
        x = batch.x[rows] if rows.size < batch.rows else batch.x
        policy.fold(at.state, x, reward, ticks, ages)
        late = slice(max(0, rows.size - RECENT), None)
        for one, *lesson in zip(x[late], tick[late].tolist(), born[late].tolist(), reward[late].tolist(), strict=True):
            at.meter.recent.append((lesson[0], lesson[1], one.reshape(1, -1, 1).copy(), lesson[2]))
        return
    for place, row in enumerate(rows.tolist()):
        _one(parts, batch, row, at, float(ticks[place]), int(tick[place]))


def _one(parts: AgentParts, batch: Batch, row: int, at: _Progress, ticks: float, tick: int) -> None:
    """One reward, as `Agent.reward` learns it."""
    assert batch.x is not None and batch.reward is not None and batch.born is not None
    born, value = int(batch.born[row]), float(batch.reward[row])
    x: Any = batch.x[row].reshape(1, -1, 1).copy()
    shown = _lent(batch, row) if parts.policy.taught_with_arms else x
    parts.policy.take(at.state, shown, value, ticks, float(tick - born))
    at.meter.recent.append((tick, born, x, value))
    at.meter.weigh(tick, parts.policy.weights(at.state))


def _lent(batch: Batch, row: int) -> Lent:
    """All arms of a decision, for a policy of the user's own."""
    assert batch.arms is not None and batch.arm is not None
    arms, arm = batch.arms[row], int(batch.arm[row])
    if not 0 <= arm < len(arms):
        raise batch.bad(row, "arms", f"arm {arm} of {len(arms)}", "all arms of the decision", "write with arms=True")
    return Lent(ArmSet(arms), arm)


def _one_at_a_time(parts: AgentParts, batch: Batch, at: _Progress, gaps: bool) -> None:
    """Learn for MASTER and BOB: a round without a reward passes before the next update, as it did live."""
    assert batch.reward is not None and batch.reward_seq is not None
    assert batch.born is not None and batch.reward_tick is not None
    for row in range(batch.rows):
        lesson = not np.isnan(batch.reward[row])
        if lesson and batch.reward_seq[row] <= at.number:
            continue
        missed = int(batch.born[row]) - 1 - at.tick
        if missed > (_MOST_MISSED if gaps else 1):
            wanted = "a row for every round, because this policy counts them"
            raise batch.bad(row, "born", int(batch.born[row]), wanted, "pass gaps=True where a few are missing")
        if missed > 0:
            parts.policy.advance(at.state, float(missed))
            at.tick += missed
        if lesson:
            _check(parts, batch, np.array([row]), at)
            tick = int(batch.reward_tick[row])
            _one(parts, batch, row, at, float(tick - at.tick), tick)
            at.tick = tick


def _quiet(parts: AgentParts, batch: Batch, rows: Ints, at: _Progress) -> None:
    """Count decisions that closed without a reward and are new to the agent."""
    if batch.verdict is None or batch.seq is None:
        return
    opened = parts.book.open
    for row in rows.tolist():
        verdict, id = batch.verdict[row], None if batch.decision_id is None else batch.decision_id[row]
        if verdict in UNLEARNED:
            verdict = "expired"
        elif verdict != "cancelled":
            continue
        if id in opened:
            at.closed.append((id, verdict, 0.0))
        elif batch.seq[row] > parts.seq:
            at.quiet[verdict] = at.quiet.get(verdict, 0) + 1


def _publish(parts: AgentParts, at: _Progress, lineage: Lineage) -> None:
    """Publish the state, together with the book and the clock after its lessons."""
    book, clock, states = parts.book, parts.clock, parts.states
    at.state.warned, at.state.outside = states.front.warned, states.front.outside
    behind = at.state.copy()
    with parts.choosing:
        opened, closed, counts, lessons = dict(book.open), dict(book.closed), dict(book.counts), dict(at.verdicts)
        for id, verdict, value in at.closed:
            entry = opened.pop(id, None)
            if entry is None:
                continue
            settled = Entry(entry.decision, None, entry.mark)
            settled.verdict, settled.value = Verdict(verdict), value
            counts[verdict] += 1
            if verdict in lessons:
                lessons[verdict] -= 1
            if book.remember:
                if len(closed) >= book.remember:
                    del closed[next(iter(closed))]
                closed[id] = settled
        for verdict, many in (*lessons.items(), *at.quiet.items()):
            counts[verdict] += many
            counts["decided"] += many
        seq, newest = max(parts.seq, at.seq), clock.newest if clock.kind == "rewards" else max(clock.newest, at.tick)
        if clock.kind == "rounds":
            seq = newest = max(seq, newest)
        # No function is called from here on, so that Ctrl-C cannot interrupt in between.
        states.front, states.back, states.tick, states.zero, states.viewed = at.state, behind, at.tick, at.zero, -1
        book.open, book.closed, book.counts = opened, closed, counts
        parts.meter, parts.seq, clock.newest, parts.lineage = at.meter, seq, newest, lineage


def merge(mine: AgentParts, other: AgentParts) -> None:
    """See `Agent.merge`. Open decisions stay where they were made."""
    _check_alike(mine, other)
    with other.turn(other.learning):
        theirs, their_tick, their_zero = other.states.front.copy(), other.states.tick, other.states.zero
        lineage, lessons = other.lineage.copy(), other.book.lessons
    with mine.turn(mine.learning), mine.busy:
        mine.lineage.check_apart(lineage)
        tick = max(mine.states.tick, their_tick) if mine.clock.kind == "wall" else mine.states.tick
        policy, behind, my_zero = mine.policy, mine.states.tick, mine.states.zero
        # An agent that has learned nothing has no time yet, and nothing to fade.
        zeros = [zero for zero in (my_zero, their_zero) if zero is not None]
        if tick > their_tick and policy.single_memory.forget and their_zero is not None:
            policy.advance(theirs, float(tick - their_tick))

        def add(state: Any) -> None:
            if tick > behind and my_zero is not None:
                policy.advance(state, float(tick - behind))
            policy.add(state, theirs)
            if mine.clock.kind == "wall" and zeros:  # the merged state counts from the earlier start
                state.set_clock(tick - min(zeros))

        both = mine.lineage.copy()
        both.merged(lineage)

        def then() -> None:
            zero, newest = min(zeros, default=None), max(mine.clock.newest, tick)
            # No function is called from here on, so that Ctrl-C cannot interrupt in between.
            mine.states.zero, mine.lineage, mine.clock.newest = zero, both, newest
            mine.book.counts["merged"] += lessons

        mine.lesson(add, tick, then, lambda: mine.lineage is both)


def _check_alike(mine: AgentParts, other: AgentParts) -> None:
    policy = mine.policy
    policy.check_adds()
    if other.digest != mine.digest:
        raise BadInput("other", f"policy {other.digest}", f"the same policy, {mine.digest}", "merge equal agents")
    if (other.clock.kind, other.clock.tick) != (mine.clock.kind, mine.clock.tick):
        raise BadInput("other", f"clock {other.clock.kind!r}", "the same clock and tick", "merge equal agents")
    if policy.single_memory.forget and mine.clock.kind != "wall":
        wanted = 'clock="wall" for a memory that fades: rounds of two agents are not on one clock'
        raise BadInput("clock", mine.clock.kind, wanted, "or use memory=Keep()")
