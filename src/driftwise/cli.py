"""The command line. Data go to stdout and progress to stderr. The exit code is 0, or 2 with an error of one sentence.

Other exit codes: 3 if another process has the database open, 4 if the store failed, 5 if another machine, library or
version computed a generation, 6 if an earlier revision of its policy computed it (docs/codes.md).
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import typer.core

from driftwise import __version__, commands, doctor
from driftwise._internal import interrupts
from driftwise._internal.terminal import table as _table
from driftwise.errors import BadInput, DriftwiseError
from driftwise.service.operate.commands import register

if TYPE_CHECKING:
    from driftwise.lab.run.results import Outcome
    from driftwise.lab.run.spec import Spec


class _Group(typer.core.TyperGroup):
    """A group that prints the whole sentence of each command. click cuts it off at the end of the line."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        listed = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl([(name, (one.help or "").split("\n\n")[0]) for name, one in listed if one is not None])


app = typer.Typer(
    name="driftwise", help="Choosing under drift.", rich_markup_mode=None, pretty_exceptions_enable=False, cls=_Group,
    context_settings={"help_option_names": ["-h", "--help"]},
)  # fmt: skip
register(app)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"driftwise {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Version.")] = False,
) -> None:
    """Choosing under drift."""


# What a product chooses from: what it needs to know, and the call that makes it.
_CHOICES = (
    ("Auto", "you do not know how fast tastes change", "dw.Agent.for_clicks(dim=5)"),
    ("a half-life", "you know how long things stay true", 'dw.Agent.for_clicks(dim=5, half_life="14d")'),
    ("keep everything", "nothing changes", 'dw.Agent(dw.make("OFUL", dim=5, horizon=10_000), rewards=(0, 1))'),
    ("LinTS", "you want Thompson sampling", 'dw.Agent(dw.make("LinTS", dim=5, horizon=10_000), rewards=(0, 1))'),
)


@app.command("list")
def list_(
    all_: Annotated[bool, typer.Option("--all", help="Every algorithm that `driftwise.make` knows by name.")] = False,
) -> None:
    """List the algorithms: those for a product, or all."""
    from driftwise.policies.names import catalogue

    if not all_:
        _table("import driftwise as dw", ("name", "if", "call"), _CHOICES)
        print("driftwise list --all has the algorithms of the paper and the field", file=sys.stderr)
        return
    rows = [
        (row["name"], row["family"], row["memory"], row["adaptation"], ", ".join(row["needs"]), row["reference"])
        for row in sorted(catalogue(), key=lambda row: row["name"] != "Auto")  # Auto comes first
    ]
    _table("driftwise.make(name, ...)", ("name", "family", "memory", "adapts", "needs", "reference"), rows)


@app.command()
def tune(
    dim: Annotated[int, typer.Option(help="Features of an arm.")],
    horizon: Annotated[int, typer.Option(help="Number of rounds, T.")],
    path_length: Annotated[float, typer.Option(help="Length of the path of θ, P_T.")],
    S: Annotated[float, typer.Option("--S", help="Largest norm of θ.")] = 1.0,
    L: Annotated[float, typer.Option("--L", help="Largest norm of an arm.")] = 1.0,
    link: Annotated[str, typer.Option(help="Link of the generalized families.")] = "logistic",
) -> None:
    """Print how fast to forget when the drift is known, by the theorems, for each family."""
    from driftwise.lab.paper.tuning import advice

    columns = ("family", "γ", "1-γ", "memory in rounds", "window", "period", "λ")
    _table(
        f"d = {dim}, T = {horizon}, P_T = {path_length:g}, S = {S:g}, L = {L:g}, {link} link", columns,
        advice(dim=dim, horizon=horizon, path_length=path_length, S=S, L=L, link=link), numeric=range(1, 7),
    )  # fmt: skip


Trials = Annotated[int | None, typer.Option(help="Independent trials; by default those of the spec.")]
Seed = Annotated[int | None, typer.Option(help="Seed; by default that of the spec.")]
Jobs = Annotated[int | None, typer.Option(help="Threads; by default one per core.", min=1)]
On = Annotated[str | None, typer.Option(help="Address of a Dask scheduler, or local:N for N processes here.")]
Tls = Annotated[Path | None, typer.Option(help="Folder with ca.pem, cert.pem and key.pem, for tls:// addresses.")]


@app.command()
def reproduce(
    experiment: Annotated[str, typer.Argument(help="Name of the experiment, or all; a wrong name prints the list.")],
    trials: Trials = None,
    seed: Seed = None,
    out: Annotated[Path, typer.Option(help="Folder for figures, curves.npz, summary.json, report.html.")] = Path(
        "results"
    ),
    jobs: Jobs = None,
    on: On = None,
    tls: Tls = None,
) -> None:
    """Reproduce the paper's experiments beside the published values; `all` writes one page with verdicts.

    `field` does the same for the papers around it, and the name of one of them, such as russac2019, for that paper.
    """
    words, page = f"driftwise reproduce {experiment}", "report" if experiment == "all" else ""
    specs, neighbour = _experiment(experiment)
    _run(specs, words, trials, seed, out, jobs, on, tls, neighbour or page)


@app.command()
def compare(
    policy: Annotated[str, typer.Option(help="package:Policy, a class or a function that makes your policy.")],
    out: Annotated[Path, typer.Option(help="Folder for the page and its figures.")] = Path("board"),
    on_worlds: Annotated[str, typer.Option("--worlds", help="A paper of the page, or field for all.")] = "field",
    trials: Annotated[int, typer.Option(help="Trials of every world, at most the spec's.")] = 5,
    jobs: Jobs = None,
) -> None:
    """Compare your own policy with those of the field's page on its worlds: ranks, intervals, and the page."""
    from driftwise._internal.validate import whole
    from driftwise.lab.field import board, page
    from driftwise.lab.field.papers import chosen, specs_of
    from driftwise.lab.field.verdicts import beside
    from driftwise.lab.run.folder import alone
    from driftwise.lab.run.trials import play

    maker, label = board.find_maker(policy), policy.rpartition(":")[2]
    whole("trials", trials, 2, "two make an interval")
    specs = [spec.repeated(min(trials, spec.trials), None) for spec in specs_of(chosen(on_worlds, "worlds"))]
    board.rehearse(maker, policy, specs)
    with alone(out) as folder:
        outcomes = [beside(one) for one in play(specs, folder, jobs)]
        outcomes = board.with_own(outcomes, maker, label, folder, trials)
        rows = {one.spec.key: page.ranks(one, label) for one in outcomes}
        page.write_field(on_worlds, outcomes, folder, rows, label)
    table = [[key, *row] for key, row in rows.items()]
    _table(label, ("world", "rank", "regret ± 95%", "best of the others"), table, numeric=(1, 2))
    written = ", ".join(str(folder / name) for name in ("field.html", "field.md", "*.csv", "figures"))
    print(f"wrote {written}", file=sys.stderr)


@app.command()
def run(
    spec: Annotated[str, typer.Argument(help="A TOML file, or the name of a spec that comes with the package.")],
    trials: Trials = None,
    seed: Seed = None,
    out: Annotated[Path, typer.Option(help="Folder for figures, curves.npz, summary.json.")] = Path("results"),
    jobs: Jobs = None,
    on: On = None,
    tls: Tls = None,
) -> None:
    """Run an experiment of your own; after an interruption the same command continues it."""
    from driftwise.lab.paper.panels import find

    found = find(spec)
    _run([found], f"driftwise run {Path(spec).name}", trials, seed, out, jobs, on, tls)


@app.command()
def plot(folder: Annotated[Path, typer.Argument(help="A folder that `run` or `reproduce` wrote.")]) -> None:
    """Draw the figures of stored results again, and the page if there is one."""
    from driftwise.lab.run import results
    from driftwise.lab.run.folder import alone

    outcomes, page = results.read_results(folder)
    with alone(folder):
        _draw(list(map(_beside(page), outcomes)), folder, page)


def _run(
    specs: Sequence[Spec], command: str, trials: int | None, seed: int | None, out: Path, jobs: int | None,
    on: str | None, tls: Path | None, page: str = "",
) -> None:  # fmt: skip
    """Run specs, store the results, draw figures and print tables. `page` is "report", a page of the field, or
    empty."""
    from driftwise.draw import plots
    from driftwise.lab.run import results
    from driftwise.lab.run.folder import alone
    from driftwise.lab.run.trials import play

    repeated = [spec.repeated(trials, seed) for spec in specs]
    words = f"{command} --trials {repeated[0].trials} --seed {repeated[0].seed}"
    with _executor(on, tls) as executor, alone(out) as folder:
        outcomes = list(map(_beside(page), play(repeated, folder, jobs, executor=executor)))
        results.write_results(outcomes, folder, words, page)
        if plots.can_draw():
            _draw(outcomes, folder, page, also=("curves.npz", "summary.json"))
        else:
            print(f"wrote {folder / 'curves.npz'}, {folder / 'summary.json'}; no picture without matplotlib: "
                  f'pip install "driftwise[plot]", then driftwise plot {folder}', file=sys.stderr)  # fmt: skip
    facts = results.versions()
    print(f"rounds: {facts['rounds']}; machine code: {facts['machine code']}", file=sys.stderr)
    if not page or not plots.can_draw():
        for outcome in outcomes:
            _report(outcome)


def _experiment(name: str) -> tuple[list[Spec], str]:
    """The specs of an experiment by its name, and that name where its page is one of the field."""
    from driftwise._internal.validate import one_of
    from driftwise.lab.field.papers import ALL, chosen, papers, specs_of
    from driftwise.lab.paper.panels import EXPERIMENTS, experiment

    one_of("experiment", name, [*EXPERIMENTS, "all", *papers(), ALL])
    return (specs_of(chosen(name)), name) if name == ALL or name in papers() else (experiment(name), "")


def _beside(page: str) -> Callable[[Outcome], Outcome]:
    """The function that adds the published values of a page to an outcome."""
    from driftwise.lab.field import verdicts
    from driftwise.lab.paper import published

    return published.beside_published if page in ("", "report") else verdicts.beside


def _executor(on: str | None, tls: Path | None) -> AbstractContextManager[Executor | None]:
    """The executor that --on names; None for this process."""
    from driftwise import cluster

    if on is None and tls is not None:
        raise BadInput("tls", str(tls), "nothing without --on", "pass --on tls://…, or leave it out")
    return nullcontext() if on is None else cluster.on(on, tls)


def _draw(outcomes: Sequence[Outcome], folder: Path, page: str, also: Sequence[str] = ()) -> None:
    """Draw figures or the page, and print which files were written."""
    from driftwise.draw import plots
    from driftwise.lab.field import page as field
    from driftwise.lab.paper import published, report

    if page not in ("", "report"):
        papers = field.write_field(page, outcomes, folder)
        rows = [[row[0], *row[2:7]] for row in papers.rows]
        heads = ("paper", "within 5%", "lines", "same", "differs", "cannot be told")
        _table("The field", heads, rows, numeric=range(1, 6))
        written = ["field.html", "field.md", "*.csv", "figures"]
    elif page:
        counts = report.write_report(outcomes, folder)
        _table("The paper's claims", counts.columns, counts.rows, counts.numeric)
        written = ["report.html", "report.md", "*.csv", "figures"]
    else:
        figures = [figure for outcome in outcomes for figure in outcome.figures]
        plots.draw([part for figure in figures for part in published.panel_parts(figure)], folder / "figure")
        written = ["figure.png", "figure.pdf", "figure.svg"]
    print("wrote " + ", ".join(str(folder / name) for name in [*written, *also]), file=sys.stderr)


@app.command()
def bench(
    horizon: Annotated[int, typer.Option(help="Rounds of a run.")] = 2000,
    repeats: Annotated[int, typer.Option(help="Repeats of each, interleaved with the others.")] = 7,
    only: Annotated[list[str] | None, typer.Option(help="A name of the catalogue; may be repeated.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for bench.json and bench.svg.")] = None,
) -> None:
    """Measure a round at three sizes beside NumPy and C; on shared machines trust only the ratios."""
    import json

    from driftwise._internal.files import keep
    from driftwise._internal.validate import one_of, whole
    from driftwise.lab.bench import chart, rounds
    from driftwise.policies.names import catalogue

    whole("horizon", horizon, 2, "pass the number of rounds"), whole("repeats", repeats)
    for name in only or ():
        one_of("only", name, [row["name"] for row in catalogue()])
    found = rounds.measure(horizon=horizon, repeats=repeats, names=only)
    columns, lines = rounds.bench_table(found)
    _table("CPU time of a round, spread, × LB-WeightUCB", columns, lines, numeric=range(1, len(columns)))
    if out is not None:
        keep(out / "bench.json", (json.dumps(rounds.plain_rows(found), indent=1) + "\n").encode())
        chart.draw_chart(found, out / "bench.svg")
        print(f"wrote {out / 'bench.json'}, {out / 'bench.svg'}", file=sys.stderr)


@app.command()
def evidence(
    out: Annotated[Path, typer.Option(help="Folder for evidence.html, evidence.md, results.json and all plays.")],
    only: Annotated[list[str] | None, typer.Option(help="A set of driftwise.lab.sets; may be repeated.")] = None,
    draws: Annotated[int, typer.Option(help="Number of draws: each has its own order of arms and its own chance.")] = 8,
) -> None:
    """Play Auto, half-lives and a static policy on real data; the same command continues an interrupted run."""
    from driftwise.lab.evidence.page import signed_difference
    from driftwise.lab.evidence.run import check_asked
    from driftwise.lab.evidence.run import evidence as gather
    from driftwise.lab.run.folder import alone

    check_asked(only or (), draws)
    words = "driftwise evidence " + "".join(f"--only {name} " for name in only or ()) + f"--draws {draws}"
    with alone(out) as folder:
        found = gather(only or (), folder, draws, command=words)
    columns = ("policy", "reward", "less static", "shuffled: less static")
    for name, one in found["sets"].items():
        rows = [[row["policy"], f"{row['reward']:.4f}", *(
            "" if row[less] is None else signed_difference(row[less], math.inf if row[over] is None else row[over])
            for less, over in (("less_static", "over_draws"), ("shuffled_less_static", "shuffled_over_draws"))
        )] for row in one["rows"]]  # fmt: skip
        _table(f"{name}: {one['rounds']} rounds, {one['arms']} arms", columns, rows, numeric=(1, 2, 3))
    print("wrote " + ", ".join(str(out / name) for name in ("evidence.html", "evidence.md", "results.json")),
          file=sys.stderr)  # fmt: skip


@app.command()
def evaluate(
    log: Annotated[Path, typer.Argument(help="A Parquet, Arrow or JSON lines file, or a folder of such parts.")],
    policy: Annotated[str, typer.Option(help="A policy of the catalogue.")] = "Auto",
    clicks: Annotated[bool, typer.Option("--clicks", help="Rewards are clicks, 0 or 1; Auto needs this.")] = False,
    method: Annotated[str, typer.Option(help="weights, or replay for logs that explored uniformly.")] = "weights",
    epsilon: Annotated[float, typer.Option(help="Share of choices that the policy draws uniformly.")] = 0.0,
    model: Annotated[str, typer.Option(help="Whose estimates DR uses: policy, or ridge.")] = "policy",
    half_life: Annotated[float | None, typer.Option(help="Half-life of the policy's memory, in ticks.")] = None,
    L: Annotated[float | None, typer.Option("--L", help="Largest norm of an arm.")] = None,
    blocks: Annotated[int, typer.Option(help="Number of stretches of time.")] = 10,
    rewards: Annotated[tuple[float, float] | None, typer.Option(help="Smallest and largest possible reward.")] = None,
    features: Annotated[Path | None, typer.Option(help="A JSON file of Features.to_dict, which makes arms.")] = None,
    items: Annotated[Path | None, typer.Option(help="A JSON file of items by name: rows, or vectors.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for report.html, report.md and evaluation.json.")] = None,
) -> None:
    """Estimate what a policy would have earned on a log of choices with propensities."""
    import json

    from driftwise._internal.files import keep
    from driftwise.data.evaluate import evaluate as judge
    from driftwise.data.page import verdict, write_page
    from driftwise.data.policy import named_policy, only_clicks
    from driftwise.tables import read_log

    source = read_log(log)
    if policy == "Auto" and not clicks and only_clicks(source):
        print("every reward is 0 or 1: pass --clicks if they are clicks; clicks have another model", file=sys.stderr)
    made = named_policy(policy, source, half_life, L, clicks=clicks)
    found = judge(
        made, source, method=method, epsilon=epsilon, model=model, blocks=blocks, name=policy, rewards=rewards,  # type: ignore[arg-type]
        features=None if features is None else commands.features_of(features),
        items=None if items is None else commands.json_of(items, "items", "rows or vectors by name"),
    )  # fmt: skip
    for title, (columns, rows) in ((f"{policy} on {log}", found.table()), ("In time", found.block_table())):
        _table(title, columns, rows, numeric=range(1, len(columns)))
    print("\n".join([*found.reasons(), str(found.drift), verdict(found).replace("**", "")]))
    if out is not None:
        written = write_page(found, out)
        keep(out / "evaluation.json", json.dumps(found.to_dict(), indent=1) + "\n")
        print("wrote " + ", ".join(map(str, [*written, out / "evaluation.json"])), file=sys.stderr)


app.command()(commands.learn)
app.command()(commands.explain)
app.command()(doctor.doctor)


@app.command("sums")
def sums_(
    log: Annotated[Path, typer.Argument(help="A Parquet, Arrow or JSON lines file, or a folder of such parts.")],
    policy: Annotated[str, typer.Option(help="A linear policy of the catalogue, whose memory is replaced.")] = "OFUL",
    half_life: Annotated[float | None, typer.Option(help="Half-life in ticks; without one everything is kept.")] = None,
    L: Annotated[float, typer.Option("--L", help="Largest norm of an arm.")] = 1.0,
    out: Annotated[Path | None, typer.Option(help="Folder for the sums of parts; a part is read once.")] = None,
    tick: Annotated[int | None, typer.Option(help="Tick of the sums; by default that of the last reward.")] = None,
    sql: Annotated[bool, typer.Option("--sql", help="Print the query for a data warehouse instead.")] = False,
    element: Annotated[str, typer.Option(help="How the query writes number {i} of the vector.")] = "x[{i}]",
    on: On = None,
    tls: Tls = None,
) -> None:
    """Reduce a log, part by part, to the sums that a linear policy learns from."""
    from driftwise.data import reduce, warehouse
    from driftwise.data.policy import named_policy
    from driftwise.tables import read_log

    found = read_log(log)
    made: Any = named_policy(policy, found, half_life, L, keeps=True)
    if sql:
        last = tick if tick is not None else reduce.last_tick(found)
        print(warehouse.sql(made, last, element=element))
        return
    with _executor(on, tls) as executor:
        total = reduce.sums(found, made, out, tick=tick, executor=executor)
    effective = total.weight**2 / total.squares if total.squares else 0.0
    rows = [("rewards", str(total.n)), ("parts", str(len(total.parts))), ("tick", str(total.tick)),
            ("sum of weights", f"{total.weight:.6g}"), ("effective rewards", f"{effective:.6g}")]  # fmt: skip
    _table(f"{policy}, forget = {total.forget:g}, d = {total.dim}", ("what", "value"), rows, numeric=(1,))
    if out is not None:
        print(f"wrote {len(total.parts)} sums to {out}", file=sys.stderr)


def _report(outcome: Outcome) -> None:
    from driftwise.draw.tables import text_table

    spec = outcome.spec
    for figure in outcome.figures:
        grid = text_table(figure)
        _table(f"{figure.title}, {spec.trials} trials, seed {spec.seed}", grid.columns, grid.rows, grid.numeric)
    for note in spec.notes:
        print(f"  {note}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command; an expected error prints one sentence and exits with 2."""
    interrupts.usual()
    if arguments is None:
        interrupts.end_compiles()
    words = list(sys.argv[1:] if arguments is None else arguments)
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # an encoding without γ must not hide the numbers
    _hold_standard_files()
    status: Any = 0
    try:
        status = app(args=words or ["--help"], standalone_mode=False)
        sys.stdout.flush()  # what cannot be written is told below, and not when the process ends
    except DriftwiseError as error:
        _fail(str(error), getattr(error, "exit_code", 2))
    except KeyboardInterrupt:
        status = 130
    except BrokenPipeError:  # the reader of the output has closed the pipe
        _drop_output()
    except OSError as error:  # usually stdout: code that writes result folders raises its own errors
        _drop_output()
        _fail(f"output: wanted somewhere to write, got {error.strerror or error}; send it elsewhere")
    except MemoryError:
        _fail("memory: wanted sizes that fit, got too little memory; pass a smaller dim, arms, window or horizon")
    except Exception as error:
        # Typer has its own copy of click or uses the installed one, so errors are recognised by their attributes.
        if type(error).__name__ == "Abort":
            status = 130
        elif not hasattr(error, "format_message"):
            raise
        else:
            _fail(error.format_message())
    if status == 130:  # what Typer makes of Ctrl-C
        print(interrupts.SENTENCE, file=sys.stderr)
    sys.exit(status if isinstance(status, int) else 0)


def _hold_standard_files() -> None:
    """Open the null device in place of a closed stdin, stdout or stderr. Otherwise the next file that is opened, such
    as a database, gets that number, and a library may print into it."""
    while (file := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(file)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # Python found it closed
            setattr(sys, name, open(os.devnull, "w"))


def _drop_output() -> None:
    """Send what is left in the buffer of stdout to the null device: Python writes it when the process ends, and would
    print the same error again and exit with 120."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(sentence: str, code: int = 2) -> None:
    print(f"driftwise: {' '.join(sentence.split())}", file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    main()
