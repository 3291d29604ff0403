"""The command line: data to stdout, progress to stderr, exit 0, or 2 with one sentence."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from driftwise.errors import DriftwiseError

if TYPE_CHECKING:
    from driftwise.experiments.results import Outcome

app = typer.Typer(
    name="driftwise", help="Choosing under drift.", add_completion=False, rich_markup_mode=None,
    pretty_exceptions_enable=False,
)  # fmt: skip


def _table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], numeric: Sequence[int] = ()) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for place, column in enumerate(columns):
        table.add_column(column, justify="right" if place in numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*row)
    # When the output is no terminal there is no width to respect, and a folded row is hard to read by machine.
    console = Console() if sys.stdout.isatty() else Console(width=200)
    console.print(table)


@app.command("list")
def list_() -> None:
    """The catalogue of algorithms."""
    from driftwise.policies.names import catalogue

    rows = [
        (row["name"], row["family"], row["memory"], row["adaptation"], ", ".join(row["needs"]), row["reference"])
        for row in catalogue()
    ]
    _table("driftwise.make(name, ...)", ("name", "family", "memory", "adaptation", "needs", "reference"), rows)


@app.command()
def tune(
    dim: Annotated[int, typer.Option(help="Features of an arm.")],
    horizon: Annotated[int, typer.Option(help="Number of rounds, T.")],
    path_length: Annotated[float, typer.Option(help="Length of the path of θ, P_T.")],
    S: Annotated[float, typer.Option("--S", help="Largest norm of θ.")] = 1.0,
    L: Annotated[float, typer.Option("--L", help="Largest norm of an arm.")] = 1.0,
    link: Annotated[str, typer.Option(help="Link of the generalized families.")] = "logistic",
) -> None:
    """How fast to forget when the drift is known: what the theorems say, for each family."""
    from driftwise.experiments.tuning import advice

    columns = ("family", "γ", "1-γ", "memory in rounds", "window", "period", "λ")
    _table(
        f"d = {dim}, T = {horizon}, P_T = {path_length:g}, S = {S:g}, L = {L:g}, {link} link", columns,
        advice(dim=dim, horizon=horizon, path_length=path_length, S=S, L=L, link=link), numeric=range(1, 7),
    )  # fmt: skip


@app.command()
def reproduce(
    experiment: Annotated[str, typer.Argument(help="Which: lb, glb, scb, piecewise, unknown-drift.")],
    trials: Annotated[int, typer.Option(help="Independent trials.")] = 20,
    seed: Annotated[int, typer.Option(help="Seed of all chance.")] = 0,
    out: Annotated[Path, typer.Option(help="Folder for figure.png, curves.npz and summary.json.")] = Path("results"),
    jobs: Annotated[int | None, typer.Option(help="Threads; by default one per core.")] = None,
) -> None:
    """The paper's experiments again, beside the published values."""
    from driftwise.border import whole
    from driftwise.experiments import plots, results
    from driftwise.experiments.paper import panels
    from driftwise.rng import checked_seed

    whole("trials", trials), checked_seed(seed)
    if experiment == "unknown-drift":
        _unknown_drift(trials, seed, jobs, results.writable(out))
        return
    chosen = panels(experiment)
    folder = results.writable(out)
    outcomes = [results.run(panel, trials=trials, seed=seed, jobs=jobs) for panel in chosen]
    results.write(outcomes, folder, f"driftwise reproduce {experiment} --trials {trials} --seed {seed}")
    plots.draw(outcomes, folder / "figure.png")
    for outcome in outcomes:
        _report(outcome)
    print(f"wrote {folder / 'figure.png'}, {folder / 'curves.npz'}, {folder / 'summary.json'}", file=sys.stderr)


@app.command()
def bench(
    horizon: Annotated[int, typer.Option(help="Rounds of a run.")] = 6000,
    repeats: Annotated[int, typer.Option(help="Runs, of which the fastest counts.")] = 5,
) -> None:
    """How long a round takes, in rounds of LB-WeightUCB: on shared machines only ratios of one run mean anything."""
    from driftwise.border import whole
    from driftwise.experiments.bench import rounds

    whole("horizon", horizon, 2, "pass the number of rounds"), whole("repeats", repeats)
    rows = [(name, f"{ns:.0f}", f"{ratio:.2f}") for name, ns, ratio in rounds(horizon=horizon, repeats=repeats)]
    _table("A round at d = 2 with 50 fixed arms", ("algorithm", "ns", "× LB-WeightUCB"), rows, numeric=range(1, 3))


def _unknown_drift(trials: int, seed: int, jobs: int | None, folder: Path) -> None:
    from driftwise.experiments import unknown

    found = unknown.run(trials=trials, seed=seed, jobs=jobs)
    unknown.write(found, folder, f"driftwise reproduce unknown-drift --trials {trials} --seed {seed}")
    unknown.draw(found, folder / "figure.png")
    for title, first, sweep in (
        ("Regret against the drift rate", "turns", found.rates),
        ("LB-WeightUCB told a wrong P_T, one turn", "told P_T ×", found.misspecified),
    ):
        rows = [(f"{x:g}", *(f"{sweep.regret[name][i].mean():.0f}" for name in sweep.regret))
                for i, x in enumerate(sweep.at)]  # fmt: skip
        _table(f"{title}, {trials} trials, seed {seed}", (first, *sweep.regret), rows, numeric=range(9))
    print(f"wrote {folder / 'figure.png'}, {folder / 'curves.npz'}, {folder / 'summary.json'}", file=sys.stderr)


def _report(outcome: Outcome) -> None:
    from driftwise.experiments.published import SECONDS

    rows = []
    for entry, line in zip(outcome.panel.entries, outcome.lines, strict=True):
        name = entry.published or ""
        published = f"{line.curve.final:.0f}" if line.curve else "–"
        ratio = f"{line.mean / line.curve.final:.2f}" if line.curve else "–"
        timed = f"{SECONDS[name]:.2f}" if outcome.panel.key == "LB" and name in SECONDS else "–"
        seconds = f"{line.seconds.mean():.4f}"
        band = f"{line.low:.0f}–{line.high:.0f}"
        rows.append((line.label, f"{line.mean:.0f}", band, published, ratio, seconds, timed))
    trials = len(outcome.lines[0].regret)
    columns = ("algorithm", "regret", "min–max", "published", "ratio", "seconds", "published s")
    _table(f"{outcome.panel.title}, {trials} trials, seed {outcome.seed}", columns, rows, numeric=range(1, 7))
    for note in outcome.panel.notes:
        print(f"  {note}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command; anything raised on purpose ends in one sentence and exit 2."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        status: Any = app(args=words or ["--help"], standalone_mode=False)
    except DriftwiseError as error:
        _fail(str(error))
    except KeyboardInterrupt:
        _interrupted()
    except Exception as error:
        # Typer brings a click of its own or uses the installed one, so its errors are known by their shape.
        if type(error).__name__ == "Abort":
            _interrupted()
        if not hasattr(error, "format_message"):
            raise
        _fail(error.format_message())
    else:
        sys.exit(status if isinstance(status, int) else 0)


def _fail(sentence: str) -> None:
    print(f"driftwise: {' '.join(sentence.split())}", file=sys.stderr)
    sys.exit(2)


def _interrupted() -> None:
    print("driftwise: interrupted", file=sys.stderr)
    sys.exit(130)


if __name__ == "__main__":
    main()
