"""A few hundred rows in the format of each set, put where the package that holds it would be."""

import csv
import dataclasses
import hashlib
import io
import json
import lzma
import zipfile

import numpy as np

from driftwise.lab.sets import hours, models, shops, travel

ROWS = 300


def packaged(monkeypatch, tmp_path, module, pin, raw):
    """A package with the pinned file, whose digest is that of these bytes."""
    made = getattr(module, pin)
    if made.source == "npm":
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(module, pin, made := dataclasses.replace(made, sha256=hashlib.sha256(raw).hexdigest()))
    path = made.kept if made.source == "npm" else tmp_path / made.member
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(raw)
    if made.source != "npm":
        package = tmp_path / made.member.split("/")[0]
        (package / "__init__.py").write_text("raise RuntimeError('data are read without importing')")
        monkeypatch.syspath_prepend(tmp_path)


def table(columns, rows):
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue().encode("utf-8")


def zipped(name, raw):
    box = io.BytesIO()
    with zipfile.ZipFile(box, "w") as file:
        file.writestr(name, raw)
    return box.getvalue()


def tafeng(rows=None):
    made = rows or [(f"11/{1 + n // 20}/2000", f"{n % 7:08}", f"10{n % 3}") for n in range(ROWS)]
    head = ("TRANSACTION_DT", "CUSTOMER_ID", "PRODUCT_SUBCLASS")
    return zipped("ta_feng.csv", b"\xef\xbb\xbf" + table(head, made))


def retail(rows=None):
    made = rows or [(489434 + n // 3, f"8504{n % 4}", 1, f"12/{1 + n // 30}/2009 7:{n % 30:02}") for n in range(ROWS)]
    return lzma.compress(table(("Invoice", "StockCode", "Quantity", "InvoiceDate"), made))


def capital(rows=None):
    made = rows or [(f"2011-01-{1 + n // 24:02} {n % 24:02}:00:00", n * n % 97, 9.0, n % 5) for n in range(ROWS)]
    return table(("ts", "count", "tmax", "pn"), made)


def elec2(rows=None):
    made = rows or [((n % 48) / 48, *(((n + k) % 7) / 7 for k in range(5)), int(n % 48 > 20)) for n in range(ROWS)]
    return table((*(f"feat_{k}" for k in range(1, 7)), "target"), made)


def bikes():
    rows = [(n % 24, n % 2, 0.5, "clear" if n % 3 else "light rain/snow", n) for n in range(40)]
    return table(("hr", "workingday", "temp", "weathersit", "bikers"), rows)


def flights(rows=None):
    made = rows or [(f"2013-01-{1 + n // 48:02}T{n // 2 % 24:02}:00:00Z", "UA" if n % 2 else "AA", n % 40)
                    for n in range(ROWS)]  # fmt: skip
    return zipped("flights.csv", table(("time_hour", "carrier", "arr_delay"), made))


def airports(rows=None):
    import pyarrow
    from pyarrow import parquet

    made = rows or [(np.datetime64("2001-01-01T00:00") + 4 * n, n % 40, ("LAS", "ATL", "ORD")[n % 3])
                    for n in range(ROWS)]  # fmt: skip
    columns = dict(zip(("date", "delay", "origin"), zip(*made, strict=True), strict=True))
    columns["date"] = np.array(columns["date"], dtype="datetime64[us]")
    file = io.BytesIO()
    parquet.write_table(pyarrow.table(columns), file)
    return file.getvalue()


def graded(rows=None):
    names = list(models.PRICES)
    made = rows or [
        {"prompt": "what\u2028now" * (1 + n % 3), "source": f"bbh/{n}",
         "arms": {name: {"reward": 0.5 + 0.1 * k, "cost": 0.001 * k} for k, name in enumerate(names)}}
        for n in range(ROWS // 4)
    ]  # fmt: skip
    return "\n".join(json.dumps(row, ensure_ascii=False) for row in made).encode("utf-8")


FORMATS = {
    "tafeng": [(shops, "TAFENG", tafeng)], "retail": [(shops, "RETAIL", retail)],
    "capital": [(hours, "CAPITAL", capital)], "elec2": [(hours, "ELEC2", elec2)], "bikes": [(hours, "BIKES", bikes)],
    "flights": [(travel, "FLIGHTS", flights)], "airports": [(travel, "AIRPORTS", airports)],
    "prompts": [(models, "VALIDATION", graded), (models, "HOLDOUT", graded)],
    "prices": [(models, "VALIDATION", graded), (models, "HOLDOUT", graded)],
}  # fmt: skip


def small(monkeypatch, tmp_path, name):
    """The set of this name, of a few hundred rows."""
    for module, pin, made in FORMATS[name]:
        packaged(monkeypatch, tmp_path, module, pin, made())
