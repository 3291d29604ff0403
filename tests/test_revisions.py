"""A revision of a policy: other arithmetic under the same name and fields is another policy, with another digest."""

import dataclasses
from typing import ClassVar
from unittest.mock import patch

import numpy as np
import pytest

import driftwise as dw
from driftwise.lab.run import trials
from driftwise.lab.run.spec import parse
from driftwise.lab.run.store import Played
from driftwise.policies.auto import Auto
from driftwise.policies.own import asked
from driftwise.policies.plain import revision_in, revision_of
from golden import keep
from refusing import refused

ARMS = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, -0.8]])
SHORT = 'title = "short"\ntrials = 3\nrecord = "last"\n[world]\nkind = "Turn"\nhorizon = 20\n' + "".join(
    f'[[policies]]\nname = "{name}"\n' for name in ("Auto", "LB-WeightUCB")
)
KEPT = keep.HERE / "0.1.0"  # its clicks are of the first default


def made(revision, make):
    """A policy of a driftwise whose Auto has this revision."""
    with patch.object(Auto, "revision", revision):
        found = make()
        assert revision_in(found.digest) == revision
        return found


def auto(link="identity"):
    return dw.make("Auto", dim=2, link=link)


@dataclasses.dataclass(frozen=True)
class Wrapped:
    """A policy of the user's own around another one; its class and its field each have a revision."""

    inner: Auto
    revision: int = 7

    def start(self, seed=0):
        return self.inner.start(seed)

    def choose(self, state, arms):
        return self.inner.choose(state, arms)

    def learn(self, state, arms, arm, reward):
        self.inner.learn(state, arms, arm, reward)


@dataclasses.dataclass(frozen=True)
class Twice:
    """Two revised parts in a revised policy."""

    parts: tuple[Auto, ...]
    revision: ClassVar[int] = 3


def test_only_a_revision_but_the_first_is_in_a_digest():
    for link in ("identity", "logistic"):
        old, new = made(1, lambda link=link: auto(link)), auto(link)
        assert Auto.revision > 1 and new.digest == f"{old.digest}-{Auto.revision}" and len(old.digest) == 20
        assert old == new and old.described == new.described
    others = [one["name"] for one in dw.catalogue() if one["name"] not in ("Auto", "D-RandLinUCB")]
    for name in others:
        policy = dw.make(name, dim=2, horizon=100, path_length=3.0, changes=2)
        assert revision_of(policy) == 1 and len(policy.digest) == 20
    drawn = dict(dim=2, memory=dw.Keep(), lam=1.0)
    assert revision_of(dw.research.LinearSampling(**drawn, drawn="multiplier")) == 2  # the law of exact propensities
    assert revision_of(dw.research.LinearSampling(**drawn)) == 1
    assert [revision_in(one) for one in ("my-3", "9" * 20 + "-", "", "9" * 20 + f"-{10**12}")] == [1] * 4


def test_parts_of_a_policy_count_and_a_field_of_that_name_does_not():
    assert revision_of(Wrapped(auto())) == Auto.revision
    assert revision_of(Twice((auto(), auto()))) == 3 + 2 * (Auto.revision - 1)
    new, last = asked(Wrapped(auto())).digest, Auto.revision
    with patch.object(Auto, "revision", 1):
        assert new == f"{asked(Wrapped(auto())).digest}-{last}"


@pytest.mark.parametrize("link", ["identity", "logistic"])
def test_a_state_of_an_earlier_revision_is_refused_and_the_sentence_names_the_log(link):
    old = made(1, lambda: auto(link))
    state = old.start()
    old.learn(state, ARMS, 1, 1.0)
    loaded, policy = dw.State.from_bytes(state.to_bytes()), auto(link)
    calls = [lambda: policy.choose(loaded, ARMS), lambda: policy.learn(loaded, ARMS, 0, 1.0),
             lambda: policy.adopted(state.to_bytes(), policy.digest, 0)]  # fmt: skip
    for call in calls:
        with refused("state", f"revision {Auto.revision} of its policy", "revision 1", "learn_log"):
            call()
    with refused("state", "another policy"):  # whose revision is not compared
        auto(link).choose(dw.State.from_bytes(dataclasses.replace(old, looks=0.125).start().to_bytes()), ARMS)


def lived(agent, first=0, last=30):
    for number in range(first, last):
        one = agent.decide(ARMS, id=f"n{number}", now=float(number))
        if number % 4:
            agent.reward(one.id, float(number % 2), now=float(number) + 0.5)


@pytest.mark.parametrize("make", [
    lambda: dw.Agent.for_clicks(2, seed=1), lambda: dw.Agent.for_values(2, 0, 1, seed=1),
    lambda: dw.Agent.for_values(2, 0, 1, seed=1, clock="wall", tick="1s"),
], ids=["clicks", "values", "wall clock"])  # fmt: skip
def test_an_agent_of_an_earlier_revision_is_refused_and_its_log_carries_on(make, tmp_path):
    with patch.object(Auto, "revision", 1):
        old = make()
        with old.log_to(tmp_path / "log", arms=True):
            lived(old)
        old.save(tmp_path / "agent")
    for policy in (None, make().policy):
        with refused("state", f"revision {Auto.revision} of its policy", "revision 1", "agent.learn_log(log)"):
            dw.Agent.load(tmp_path / "agent", policy=policy)
    agent = make()
    agent.learn_log(tmp_path / "log")  # as the message says
    assert agent.counts["learned"] == old.counts["learned"] > 0
    assert agent.state.clock == old.state.clock and agent.state.observations == old.state.observations
    lived(agent, 30, 40)
    assert dw.Agent.from_bytes(agent.to_bytes()).to_bytes() == agent.to_bytes()


def test_an_agent_of_the_users_own_policy_around_an_earlier_revision_is_refused():
    class Kept(Wrapped):
        def state_to_bytes(self, state):
            return state.to_bytes()

        def state_from_bytes(self, data):
            return dw.State.from_bytes(data)

    with patch.object(Auto, "revision", 1):
        old = dw.Agent(Kept(auto()), rewards=(0, 1))
        data = old.to_bytes()
    with refused("state", "revision 1", "learn_log"):
        dw.Agent.from_bytes(data, policy=Kept(auto()))


def test_the_first_agent_that_was_kept_is_refused_and_its_log_carries_on():
    """It is of a time when the default had another name and other groups."""
    with refused("policy", "got 'TrendBank'", "agent.learn_log(log)"):
        dw.Agent.load(KEPT / "clicks.agent")
    with refused("policy", "digest", "agent.learn_log(log)"):
        dw.Agent.load(KEPT / "clicks.agent", policy=keep.agents()["clicks"].policy)
    with refused("data", "a state of this version", "learn the log"):
        dw.State.from_bytes((KEPT / "clicks.state").read_bytes())
    agent = keep.agents()["clicks"]
    assert agent.learn_log(KEPT / "clicks-jsonl") > 40


def test_a_stored_trial_of_an_earlier_revision_is_played_again(tmp_path):
    """Trials of both policies are stored from the first revision. Those of Auto are played again, others are not."""
    with patch.object(Auto, "revision", 1):
        wanted = list(trials._wanted(parse(SHORT, "short.toml")))
    store = trials.TrialStore(tmp_path)
    store.put([Played(one.name, one.trial, np.zeros(one.rounds), 1.0) for one in wanted])
    assert len(wanted) == 6
    missing = [name for job in trials._missing([parse(SHORT, "short.toml")], store) for name in job.seats]
    assert len(missing) == 3 and {name.split("-")[0] for name in missing} == {"Auto"}
    with patch.object(Auto, "revision", 1):
        assert not trials._missing([parse(SHORT, "short.toml")], store)
