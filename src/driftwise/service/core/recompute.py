"""Recompute a decision from the log: the same state, arms and number give the same choice to the last bit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from driftwise.agent.choosing import Picked
from driftwise.agent.explain import Compared, compared
from driftwise.agent.record import checked_id
from driftwise.ledger import Verdict
from driftwise.policies.arms import ArmSet
from driftwise.policies.state import State
from driftwise.service.core.fold import Fold, Unlike, resume
from driftwise.service.core.offers import FREE, Limits, limits_of, stored_arms
from driftwise.service.core.origin import elsewhere
from driftwise.service.core.setup import Era, Setup, setup
from driftwise.service.core.stream import decided
from driftwise.service.stores.records import DecisionRow
from driftwise.service.stores.store import Store
from driftwise.service.wire.protocol import Arm, Explained, Refusal, StreamBody, other_result


def eras_of(store: Store, stream: int) -> list[Era]:
    """All generations of a stream. If another machine rounds the numbers of a policy differently, `resume` refuses the
    generation."""
    made: list[Era] = []
    for row in store.eras(stream):
        body = msgspec.json.decode(row.body, type=StreamBody)
        made.append(Era(row, setup(body, made[-1].setup.tick if made else None)))
    return made


def upon(made: Setup, row: DecisionRow) -> int:
    """The tick to which the state was advanced for a decision (docs/contract.md#ticks)."""
    return made.clock().upon(row.born)


def again(fold: Fold, made: Setup, row: DecisionRow, arms: ArmSet, limits: Limits = FREE) -> Picked:
    """The choice of a decision, on the state on which it was made."""
    return fold.choose(arms, upon(made, row), row.seq, limits)


def same(row: DecisionRow, found: Picked) -> bool:
    """Whether a choice is the stored one, to the last bit."""
    choice, share, draws, explored = found
    made = (choice.arm, choice.score, choice.mean, choice.bonus, share, draws, int(explored))
    return made == (row.proposed, row.score, row.mean, row.bonus, row.share, row.draws, row.explored)


def arms_of(store: Store, row: DecisionRow) -> ArmSet | None:
    """The arms of a decision; None if they were forgotten."""
    found = stored_arms(store, row)
    return None if found is None else ArmSet(found[1])


class Remade(NamedTuple):
    """A decision and its generation; and its arms, its state and its limits, if they were not forgotten."""

    row: DecisionRow
    era: Era
    arms: ArmSet | None
    fold: Fold | None
    limits: Limits = FREE

    @property
    def state(self) -> State:
        """The state on which it was chosen, at its tick."""
        assert self.fold is not None, "called only if the arms are known"
        found: State = self.fold.states.at(upon(self.era.setup, self.row))
        return found

    @property
    def draw(self) -> int | None:
        return None if self.era.setup.policy.deterministic else self.row.seq

    @property
    def names(self) -> list[str] | None:
        """The names of its items; None if the arms had no names."""
        return None if self.row.candidates is None else msgspec.json.decode(self.row.candidates, type=list[str])


def decision_of(store: Store, stream: int, id: str) -> DecisionRow:
    """A decision by its id."""
    row = store.decision(stream, checked_id(id))
    if row is None:
        raise Refusal("unknown_decision")
    return row


def remade(store: Store, row: DecisionRow) -> Remade:
    """A decision reconstructed from the log."""
    era = next(one for one in eras_of(store, row.stream) if one.row.number == row.era)
    arms = arms_of(store, row) if row.state_seq >= era.row.base else None
    fold = None if arms is None else _fold_at(store, era, row.state_seq)
    return Remade(row, era, arms, fold, limits_of(store.detail(row.stream, row.seq), row.n))


def explain(store: Store, stream: int, id: str) -> Explained:
    """Explain one decision from the log."""
    return explained(store, remade(store, decision_of(store, stream, id)))[0]


def explained(store: Store, found: Remade, labels: Sequence[str] = ()) -> tuple[Explained, Compared | None]:
    """The explanation of a decision, with its arms as the policy saw them."""
    row, era, arms, fold, limits = found
    if arms is None or fold is None:
        return recorded(store, row, era), None
    recomputed = same(row, again(fold, era.setup, row, arms, limits)) or (None if elsewhere(era) else False)
    own, costs, names = limits.place(row.proposed) or 0, limits.costs, found.names
    seen = compared(fold.policy, found.state, limits.among(arms), found.draw, own, labels, costs)
    total = seen.scores.score if costs is None else seen.scores.score - costs
    listed = [
        Arm(arm=arm, item=None if names is None else names[arm], score=float(total[place]),
            mean=float(seen.scores.mean[place]), bonus=float(seen.scores.bonus[place]),
            cost=None if costs is None else float(costs[place]))
        for place, arm in ((place, limits.arm(place)) for place in seen.order)
    ]  # fmt: skip
    seen = seen._replace(rival=None if seen.rival is None else limits.arm(seen.rival))
    return recorded(store, row, era, listed, recomputed), seen


def recorded(
    store: Store, row: DecisionRow, era: Era, arms: Sequence[Arm] = (), recomputed: bool | None = None
) -> Explained:
    """The stored values of a decision, with what was recomputed."""
    reward, detail = store.reward(row.stream, row.id), store.detail(row.stream, row.seq)
    return Explained(
        decision=decided(row), born=row.born, at=row.at, policy=era.row.policy, arms=list(arms), recomputed=recomputed,
        reward=None if reward is None else reward.value,
        verdict=(Verdict.OPEN if reward is None else Verdict(reward.verdict)).value,
        trace=None if detail is None else detail.trace,
    )  # fmt: skip


def _fold_at(store: Store, era: Era, seq: int) -> Fold | None:
    """The state of a generation after `seq` rewards, from the nearest snapshot before. None if another machine or
    version computed it and the state differs here."""
    try:
        return resume(store, era.row, era.setup, upto=seq)
    except Unlike as error:
        if elsewhere(era):
            return None
        raise other_result(error, "id") from None
