"""A decision again from what is written: the same state, arms and number give the same choice to the last bit."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
import numpy as np

from driftwise.agent.choosing import Picked
from driftwise.policies.arms import ArmSet
from driftwise.service.fold import Fold, Unlike, resume
from driftwise.service.offers import rows_of
from driftwise.service.protocol import Arm, Explained, Refusal, StreamBody
from driftwise.service.setup import Setup, setup
from driftwise.service.store import Damaged, DecisionRow, EraRow, Store
from driftwise.service.stream import decided


def setup_of(era: EraRow, tick: float | None = None) -> Setup:
    """The parts that an era was made of; a policy that is no longer the same is said to be."""
    made = setup(msgspec.json.decode(era.body, type=StreamBody), tick)
    if made.policy.digest != era.policy:
        raise Damaged("policy", f"numbers of digest {made.policy.digest}, where {era.policy} was written")
    return made


class Era(NamedTuple):
    """An era with its parts: those of the ones before it say how long a tick is."""

    row: EraRow
    setup: Setup


def eras_of(store: Store, stream: int) -> list[Era]:
    """All eras of a stream."""
    made: list[Era] = []
    for row in store.eras(stream):
        made.append(Era(row, setup_of(row, made[-1].setup.tick if made else None)))
    return made


def upon(made: Setup, row: DecisionRow) -> int:
    """The tick of the state that a decision was chosen on (PRODUCT.md 1)."""
    return row.born if made.body.clock == "wall" else row.born - 1


def again(fold: Fold, made: Setup, row: DecisionRow, arms: ArmSet) -> Picked:
    """The choice of a decision, on the state it was made on."""
    return fold.choose(arms, upon(made, row), row.seq)


def same(row: DecisionRow, found: Picked) -> bool:
    """Whether a choice is the one that was written, to the last bit."""
    choice, share, draws, explored = found
    made = (choice.arm, choice.score, choice.mean, choice.bonus, share, draws, int(explored))
    return made == (row.proposed, row.score, row.mean, row.bonus, row.share, row.draws, row.explored)


def arms_of(store: Store, row: DecisionRow) -> ArmSet | None:
    """The arms of a decision; none where they were forgotten."""
    found = None if row.arm_set is None else store.arms(row.arm_set)
    return None if found is None else ArmSet(rows_of(found[2], found[1]))


def explain(store: Store, stream: int, id: str) -> Explained:
    """One decision explained from the log alone."""
    row = store.decision(stream, id)
    if row is None:
        raise Refusal(404, "nobody decided this", "id", "send the id that decide answered with")
    era = next(one for one in eras_of(store, stream) if one.row.number == row.era)
    arms, listed, recomputed = arms_of(store, row), [], None
    if arms is not None:
        fold = _fold_at(store, era, row.state_seq)
        policy = fold.policy
        recomputed = same(row, again(fold, era.setup, row, arms))
        state = fold.states.at(upon(era.setup, row) - era.row.origin)
        scores = policy.scores(state, arms, None if policy.deterministic else row.seq)
        names = None if row.candidates is None else msgspec.json.decode(row.candidates, type=list[str])
        listed = [
            Arm(arm=arm, item=None if names is None else names[arm], score=float(scores.score[arm]),
                mean=float(scores.mean[arm]), bonus=float(scores.bonus[arm]))
            for arm in np.argsort(-scores.score, kind="stable").tolist()
        ]  # fmt: skip
    reward = store.reward(stream, id)
    return Explained(
        decision=decided(row), born=row.born, at=row.at, policy=era.row.policy, arms=listed, recomputed=recomputed,
        reward=None if reward is None else reward.value, verdict="open" if reward is None else reward.verdict,
    )  # fmt: skip


def _fold_at(store: Store, era: Era, seq: int) -> Fold:
    """The state of an era after so many rewards, from the nearest snapshot before."""
    try:
        return resume(store, era.row, era.setup, upto=seq)
    except Unlike as slip:
        raise Refusal(409, f"the log does not come out as written: {slip}", "id", "run driftwise verify") from None
