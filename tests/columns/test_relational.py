"""Features as queries: what the crawler finds equals plain aggregates, and only an aggregate of a child predicts."""

from __future__ import annotations

import builtins

import duckdb
import numpy as np
import pandas as pd
import pytest

from tamis import AlphaInvesting, load, save
from tamis.columns.generators import (
    Aggregate,
    Chain,
    Column,
    Database,
    Interactions,
    NewRows,
    Originals,
    Power,
    Product,
    Query,
    Recipes,
    Relational,
    SQLFeatures,
    explore,
)
from tamis.columns.generators.aggregate import Scope
from tamis.columns.generators.schema import Link
from tamis.errors import CheckpointError, DataError
from tests.twins.column_generators import aggregates

LINKS = [("orders.customer", "customers.id"), ("orders.product", "products.id"), ("items.order", "orders.id"),
         ("customers.region", "regions.id")]  # fmt: skip


@pytest.fixture
def shop(rng):
    """Customers with numbers of their own that say nothing, their orders, what was ordered, and where they live."""
    n, m = 150, 2500
    customers = pd.DataFrame(
        {"id": rng.permutation(n) + 2**60, "region": rng.integers(0, 4, n), "age": rng.normal(size=n)}
    )
    orders = pd.DataFrame({
        "id": np.arange(m), "customer": rng.choice(customers["id"][:-3], m), "product": rng.integers(0, 9, m),
        "amount": rng.exponential(size=m), "status": rng.choice(["paid", "it's late", "lost"], m),
        "gift": rng.random(m) < 0.3, "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, m), "D"),
    })  # fmt: skip
    orders.loc[3, "amount"] = np.nan
    items = pd.DataFrame({"order": rng.integers(0, m, 4000), "weight": rng.normal(size=4000)})
    products = pd.DataFrame({"id": range(9), "kind": list("aabbbcccc"), "price": rng.exponential(size=9)})
    regions = pd.DataFrame(
        {"id": range(4), "name": ["north", "south", "east", "west"], "taxes": [1.0, 3.0, 2.0, 5.0]}
    )
    return {
        "customers": customers,
        "orders": orders,
        "items": items,
        "products": products,
        "regions": regions,
    }


def crawler(shop, **parameters):
    return Relational(shop, "customers", "id", LINKS, **parameters)


def everything(stream, y):
    """All features of a stream, and the recipe of each."""
    selector, found, recipes = AlphaInvesting(missing="mean").start(y), {}, {}
    while (made := stream.next_features(selector)) is not None:
        found.update(zip(made[0], np.array(made[1]).T, strict=True))
        recipes.update((name, stream._last_block.recipe(i)) for i, name in enumerate(made[0]))
    return found, recipes


@pytest.mark.slow
def test_features_equal_plain_aggregates(shop, rng):
    keys = shop["customers"]["id"].tolist()
    found, _ = everything(crawler(shop), rng.normal(size=150))
    orders = shop["orders"].dropna()
    late = orders[orders.status == "it's late"]
    both = orders.merge(shop["products"], left_on="product", right_on="id")
    items = shop["items"].merge(shop["orders"], left_on="order", right_on="id")
    plain = {
        "orders.amount": (orders, "amount"),
        "orders.amount | status = 'it''s late'": (late, "amount"),
        "orders.amount | gift = TRUE": (orders[orders.gift], "amount"),
        "orders.products.price": (
            shop["orders"].merge(shop["products"], left_on="product", right_on="id"),
            "price",
        ),
        "orders.items.weight": (items, "weight"),
        "orders.items.weight | orders.status = 'paid'": (items[items.status == "paid"], "weight"),
        "orders.products:orders.amount | kind = 'c'": (both[both.kind == "c"], "amount"),
    }
    for place, (rows, column) in plain.items():
        for kind, values in aggregates(rows, "customer", column, keys).items():
            np.testing.assert_allclose(
                found[f"{kind}({place})"], values, rtol=1e-12, atol=1e-12, err_msg=place
            )
    by_customer = shop["orders"].groupby("customer")
    counts = by_customer.size().reindex(keys, fill_value=0)
    assert counts.min() == 0
    np.testing.assert_array_equal(found["count(orders)"], counts)
    n_kinds = by_customer.status.nunique().reindex(keys, fill_value=0)
    np.testing.assert_array_equal(found["distinct(orders.status)"], n_kinds)
    days = by_customer.day.max().reindex(keys) - pd.Timestamp(0)
    np.testing.assert_array_equal(found["max(orders.day)"], days.dt.total_seconds())
    region = shop["customers"].merge(shop["regions"], left_on="region", right_on="id")
    np.testing.assert_array_equal(found["value(regions.taxes)"], region["taxes"])
    np.testing.assert_array_equal(found["count(regions | name = 'east')"], region["name"] == "east")
    assert not any("product)" in name or "order)" in name for name in found)  # keys are not summed up


def test_the_query_is_the_recipe(shop, rng):
    """Each feature's own query, run by itself, gives what the common query of its scope gave."""
    found, recipes = everything(crawler(shop, max_values=2), rng.normal(size=150))
    database, keys = duckdb.connect(), shop["customers"]["id"].tolist()
    for name, table in shop.items():
        database.register(name, table)
    assert len(found) > 100
    for name in list(found)[::7]:
        own = dict(database.execute(str(recipes[name])).fetchall())
        values = np.array([own.get(key, recipes[name].empty) for key in keys], dtype=float)
        np.testing.assert_allclose(found[name], values, rtol=1e-12, atol=1e-12, err_msg=name)


@pytest.mark.slow
def test_only_an_aggregate_of_a_child_predicts_and_new_rows_are_served(shop, rng, tmp_path):
    rows = shop["orders"].merge(shop["products"], left_on="product", right_on="id")
    rows = rows[(rows.status == "lost") & (rows.kind == "c")]
    total = rows.groupby("customer").amount.sum().reindex(shop["customers"]["id"], fill_value=0).to_numpy()
    y = total + 0.05 * rng.normal(size=150)
    own = shop["customers"][["age"]]
    stream = Chain(Originals(own), crawler(shop), Interactions(own))
    found = explore(AlphaInvesting(target_fdr=0.05, missing="mean"), stream, y)
    name = "sum(orders.products:orders.amount | orders.status = 'lost' and kind = 'c')"
    assert name in found.recipes.names
    assert "age" not in found.selector.selected_
    recipes = load(save(found.recipes, tmp_path / "found.tamis"))
    new = shop["customers"].iloc[[5, 2, 9]]
    fresh = recipes.transform(new, database=shop)
    np.testing.assert_allclose(fresh, found.transform(shop["customers"], database=shop)[[5, 2, 9]])
    np.testing.assert_allclose(fresh[:, recipes.names.index(name)], total[[5, 2, 9]], atol=1e-12)
    with pytest.raises(DataError, match="give the database"):
        recipes.transform(new)
    with pytest.raises(DataError, match="give a frame with the column 'id'"):
        recipes.transform(new[["age"]].to_numpy(), database=shop)
    shop["customers"]["left"] = np.where(total > np.median(total), "yes", "no")
    assert crawler(shop).column("left").tolist() == shop["customers"]["left"].tolist()


def test_columns_of_every_type_and_what_no_row_has(rng):
    """Numbers of any kind, times, categories; lists are passed over, and so is what is never known."""
    connection = duckdb.connect()
    connection.execute("CREATE TYPE mood AS ENUM ('sad', 'merry')")
    connection.execute("CREATE TABLE people AS SELECT range AS id FROM range(20)")
    connection.execute("""CREATE TABLE calls AS SELECT range % 20 AS person, (range * 1.5)::DECIMAL(10, 2) AS cost,
        range::HUGEINT AS huge, DATE '2024-01-01' + range::INT AS day, range % 2 = 0 AS answered, [range] AS list,
        CASE WHEN range % 3 = 0 THEN 'sad' ELSE 'merry' END::mood AS mood, NULL::DOUBLE AS never FROM range(200)""")
    stream = Relational(connection, "people", "id", [("calls.person", "people.id")])
    found, _ = everything(stream, rng.normal(size=20))
    calls = np.arange(200).reshape(10, 20)
    np.testing.assert_allclose(found["sum(calls.cost)"], 1.5 * calls.sum(axis=0))
    np.testing.assert_allclose(
        found["max(calls.huge | mood = 'sad')"], np.where(calls % 3 == 0, calls, -1).max(axis=0)
    )
    np.testing.assert_array_equal(found["count(calls | answered = TRUE)"], (calls % 2 == 0).sum(axis=0))
    first = pd.Timestamp("2024-01-01").timestamp()
    np.testing.assert_allclose(found["min(calls.day)"], first + 86400 * np.arange(20))
    assert not any("list" in name for name in found)
    assert [name for name in found if "never" in name and not name.startswith("sum")] == []


def test_finer_conditions_come_of_accepted_ones_only(shop, rng):
    stream = crawler(shop)
    selector = AlphaInvesting(target_fdr=0.05, missing="mean").start(rng.normal(size=150))
    names = [name for made in iter(lambda: stream.next_features(selector), None) for name in made[0]]
    assert not any(" and " in name for name in names)
    assert len(set(names)) == len(names)


def test_finer_conditions_are_offered_next(shop, rng):
    """The bar is highest after a discovery; what was still to come follows in its order."""
    stream, plain = crawler(shop, depth=1), crawler(shop, depth=1)
    selector = AlphaInvesting(missing="mean").start(rng.normal(size=150))
    order = [name for made in iter(lambda: plain.next_features(selector), None) for name in made[0]]
    first = next(name for name in order if name.startswith("count(") and " | " in name)
    seen = []
    while (made := stream.next_features(selector, 1)) is not None:
        seen += made[0]
        if made[0] == [first]:
            stream._on_accept(first, 0)
    at = seen.index(first) + 1
    at += sum(name.partition(" | ")[2] == first.partition(" | ")[2] for name in order) - 1  # of the same rows
    finer = [name for name in seen if " and " in name]
    assert finer
    assert seen[at : at + len(finer)] == finer
    assert [name for name in seen if name not in finer] == order


def test_a_crawl_is_resumed(shop, rng, tmp_path):
    orders = shop["orders"]
    some = orders[(orders.status == "lost") & orders.gift]
    y = some.groupby("customer").amount.sum().reindex(shop["customers"]["id"], fill_value=0).to_numpy()
    y = y + 0.05 * rng.normal(size=150)
    whole = explore(AlphaInvesting(missing="mean"), crawler(shop, random_state=1, depth=1), y)
    assert any(" and " in name for name in whole.selector.selected_)
    for n in (30, 60, whole.n_candidates - 3):
        path = tmp_path / f"{n}.tamis"
        for budget in (n, None):
            stream = crawler(shop, random_state=1, depth=1)
            again = explore(
                AlphaInvesting(missing="mean"), stream, y, checkpoint=path, max_candidates=budget
            ).selector
        assert again.selected_ == whole.selector.selected_
        assert again.trace_["name"].tolist() == whole.selector.trace_["name"].tolist()


def test_any_database_and_any_order_of_keys(shop, tmp_path, rng):
    y = rng.normal(size=150)
    found, _ = everything(crawler(shop, depth=1), y)
    connection = duckdb.connect(str(tmp_path / "shop.duckdb"))
    for name, frame in shop.items():
        connection.register("given", frame)
        connection.execute(f'CREATE TABLE "{name}" AS SELECT * FROM given')
    mixed = rng.permutation(150)
    keys = shop["customers"]["id"].to_numpy()[mixed]
    by_connection, _ = everything(crawler(connection, depth=1, keys=keys), y)
    connection.close()
    by_path, _ = everything(crawler(tmp_path / "shop.duckdb", depth=1), y)
    shop["orders"].to_csv(tmp_path / "orders.csv", index=False)
    by_file, _ = everything(crawler({**shop, "orders": tmp_path / "orders.csv"}, depth=1), y)
    assert list(found) == list(by_connection) == list(by_path)
    for name, values in found.items():
        np.testing.assert_allclose(by_connection[name], values[mixed], rtol=1e-12, err_msg=name)
        np.testing.assert_allclose(by_path[name], values, rtol=1e-12)
        np.testing.assert_allclose(by_file[name], values, rtol=1e-12)


def test_queries_of_ones_own(shop):
    shop["customers"]["id"] = [f"c{i}" for i in range(150)]
    queries = {"none": "SELECT id, age FROM customers WHERE id = 'c7'",
               "twice": "SELECT 'c1', 1 UNION ALL SELECT 'c1', 2", "wide": "SELECT id, age, age FROM customers",
               "text": "SELECT id, id FROM customers", "typo": "SELEC 1",
               "type": "SELECT 1, 2"}  # fmt: skip
    selector = AlphaInvesting(missing="mean").start(np.arange(150.0))

    def run(name):
        stream = SQLFeatures(shop, [(name, queries[name])], shop["customers"]["id"], key="id")
        return stream.next_features(selector)[1][:, 0]

    values = run("none")
    assert np.flatnonzero(~np.isnan(values)).tolist() == [7]
    for name, message in {"twice": "two values for the key 'c1'", "wide": "two columns", "text": "two columns",
                          "typo": "fails: Parser Error", "type": "cast one"}.items():  # fmt: skip
        with pytest.raises(DataError, match=f"Feature '{name}': .*{message}"):
            run(name)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"key": "name"}, "no column 'customers.name'"),
        ({"key": "region"}, "is [0-9] in two rows"),
        ({"links": [("orders.buyer", "customers.id")]}, "no column 'orders.buyer'"),
        ({"links": [("bills.buyer", "customers.id")]}, "bills"),
        ({"exclude": ["orders.colour"]}, "no column 'orders.colour'"),
        ({"depth": 0}, "depth must be"),
        ({"aggregates": ["median"]}, "'median'"),
        ({"database": {"customers": "missing.csv"}}, "cannot be opened"),
        ({"keys": [1.0, np.nan]}, "key 'id' of row 1 is missing"),
    ],
)
def test_bad_parameters_are_named(shop, parameters, message):
    with pytest.raises(ValueError, match=message):
        Relational(**{"database": shop, "target": "customers", "key": "id", "links": LINKS, **parameters})


def test_without_duckdb_the_extra_is_named(monkeypatch):
    usual = builtins.__import__

    def without(name, *args, **kwargs):
        if name == "duckdb":
            raise ImportError(name)
        return usual(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"pip install 'tamis\[sql\]'"):
        Database({})
    monkeypatch.undo()
    with pytest.raises(TypeError, match="must be a DuckDB connection"):
        Database(3)


# -- files from others, and databases that change ----------------------------------------------------------

HARM = "COPY (SELECT 'was here') TO '{}'; SELECT id, age FROM customers"


def aggregate(**changes):
    path = (Link("customers", "id", "orders", "customer", to_children=True),)
    scope = {"target": "customers", "key": "id", "path": path, "where": (("orders", "status", "lost"),)}
    own = {"kind": "sum", "table": "orders", "column": "amount"}
    own = {name: changes.pop(name, value) for name, value in own.items()}
    return Aggregate(scope=Scope(**{**scope, **changes}), **own)


def test_a_file_holds_no_sql_that_is_run(shop, tmp_path):
    """A recipe with a second statement, saved as one could: not loaded, and not run if it is loaded on purpose."""
    written = tmp_path / "written.csv"
    recipes = Recipes({"harm": Query(HARM.format(written), "id", 0.0)}, {}, [])
    path = save(recipes, tmp_path / "harm.tamis")
    with pytest.raises(CheckpointError, match=r"executes code from its author: .* classes=\[Query\]"):
        load(path)
    loaded = load(path, classes=[Query])
    for database in (shop, Database(shop), duckdb.connect()):
        with pytest.raises(DataError, match="is not one SELECT but COPY and SELECT"):
            loaded.transform(shop["customers"], database=database)
    assert not written.exists()


@pytest.mark.parametrize(
    "query",
    ["SELECT * FROM read_text('{}')", "SELECT * FROM '{}'", "SELECT id, age FROM shop", "SELECT 1, * FROM glob('/*')"],
)  # fmt: skip
def test_queries_read_the_given_tables_only(shop, tmp_path, query):
    secret, given, pattern = (
        tmp_path / name for name in ("secret.csv", "given/orders.csv", "given/ord*.csv")
    )
    secret.write_text("a,b\n1,2\n")
    given.parent.mkdir()
    shop["orders"].to_csv(given, index=False)
    connection = duckdb.connect(str(tmp_path / "shop.duckdb"))
    connection.execute("CREATE TABLE orders AS SELECT 1 AS id")
    connection.close()
    for source in ({"orders": given}, {"orders": str(pattern)}, tmp_path / "shop.duckdb"):
        database = Database(source)
        assert len(database.columns("SELECT id FROM orders")[0])
        with pytest.raises(DataError, match="fails"):
            database.columns(query.format(secret))
        for harm in ("SET enable_external_access = true", "CREATE TABLE t AS SELECT 1", ""):
            with pytest.raises(DataError, match="not one SELECT"):
                database.columns(harm)


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "sum(1) FROM x; --"}, {"kind": "count"}, {"column": None}, {"column": 3}, {"table": "customers"},
        {"path": ()}, {"target": "people"}, {"where": (("items", "weight", 1.0),)},
        {"where": (("orders", "status", [1]),)}, {"where": (("orders", "status", "a\0b"),)},
        {"where": (("orders", "amount", float("nan")),)}, {"key": ""},
    ],
)  # fmt: skip
def test_an_aggregate_is_checked_when_it_is_loaded(changes, tmp_path):
    good, bad = aggregate(), aggregate(**changes)
    assert load(save(good, tmp_path / "good.tamis")) == good
    with pytest.raises(CheckpointError, match=r"is not a valid file of tamis\.save: |whose 'column' is 3"):
        load(save(bad, tmp_path / "bad.tamis"))


def test_names_and_values_of_an_aggregate_cannot_leave_their_quotes(tmp_path):
    written = tmp_path / "written.csv"
    name = f"x\" FROM y; COPY (SELECT 1) TO '{written}'; --"
    table = pd.DataFrame({"customer": [1, 1, 2], name: [1.0, 2.0, 4.0], "status": ["a'b", "a'b", "c"]})
    path = (Link("customers", "id", name, "customer", to_children=True),)
    total = Aggregate("sum", Scope("customers", "id", path, ((name, "status", "a'b"),)), name, name)
    assert total.values(NewRows(None, {"id": np.array([2, 1])}, {name: table})).tolist() == [0.0, 3.0]
    assert not written.exists()


def test_an_aggregate_reads_no_file_that_is_named_like_a_table(tmp_path):
    """To a connection that may read files, FROM "a.csv" is a file."""
    secret = tmp_path / "secret.csv"
    secret.write_text("customer,amount\n1,2\n")
    path = (Link("customers", "id", str(secret), "customer", to_children=True),)
    reads = aggregate(path=path, where=(), table=str(secret))
    rows = NewRows(None, {"id": np.array([1])}, duckdb.connect())
    with pytest.raises(DataError, match="There is no table"):
        reads.values(rows)


def test_a_walk_goes_on_only_on_the_same_rows(shop, rng, tmp_path):
    y = rng.normal(size=150)
    queries = [f"SELECT customer, {kind}(amount) FROM Orders GROUP BY 1" for kind in ("sum", "avg")]
    streams = {
        "relational": lambda: crawler(shop, depth=1),
        "sql": lambda: SQLFeatures(shop, queries, shop["customers"]["id"], key="id", empty=0),
    }
    for name, stream in streams.items():
        path = tmp_path / name
        for n in (1, 2):
            again = explore(AlphaInvesting(), stream(), y, checkpoint=path, max_candidates=n)
            assert again.n_candidates == n
        shop["regions"].loc[2, "taxes"] += 1 if name == "sql" else 0  # of no query
        assert explore(AlphaInvesting(), stream(), y, checkpoint=path, max_candidates=2).n_candidates == 2
        shop["orders"].loc[7, "amount"] += 1e-9
        with pytest.raises(CheckpointError, match=r"the stream differs .*or the data that it reads"):
            explore(AlphaInvesting(), stream(), y, checkpoint=path)


def test_a_walk_runs_its_own_queries_only(shop, tmp_path):
    """A checkpoint with another query in its book, as one could write it."""
    late = shop["orders"].groupby("customer").amount.sum().reindex(shop["customers"]["id"], fill_value=0)
    query = "SELECT customer, sum(amount) FROM orders GROUP BY 1"
    path = tmp_path / "walk.tamis"

    def go():
        stream = SQLFeatures(shop, [query], shop["customers"]["id"], key="id", empty=0)
        return explore(AlphaInvesting(), stream, late.to_numpy(), checkpoint=path)

    assert go().selector.selected_ == [query]
    assert len(go().recipes) == 1
    saved = load(path, classes=[Query])
    recipes = saved["walk"]["book"].recipes
    recipes[query] = Product((Power(Query("SELECT 1, 2", "id", 0.0), "a", 2), Column("b")), ("a", "b"))
    save(saved, path)
    with pytest.raises(
        CheckpointError, match="contains the query 'SELECT 1, 2', which this stream was not given"
    ):
        go()
