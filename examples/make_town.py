"""Writes the two small folders of tables that the tutorial uses: a town, and its newcomers.

People have a text id, an age, a monthly spend, a district and a phone; friends tend to choose the same plan.
"""

from pathlib import Path

import numpy as np
import pandas as pd

HERE = Path(__file__).parent
PLANS = np.array(["basic", "family", "student"])


def people(rng: np.random.Generator, count: int, prefix: str) -> pd.DataFrame:
    """Draw people whose age and spend say something about their plan, but not everything."""
    plan = rng.choice(3, count, p=[0.45, 0.3, 0.25])
    districts = np.array(["north", "south", "harbour", "hill"])
    usual = rng.random(count) < 0.4
    return pd.DataFrame(
        {
            "id": [f"{prefix}{i:04d}" for i in range(count)],
            "label": PLANS[plan],
            "age": np.clip(rng.normal(np.array([45, 41, 24])[plan], 11), 16, 90).round().astype(int),
            "spend": rng.gamma(4, np.array([4.0, 8.0, 3.5])[plan]).round(2),
            "district": districts[np.where(usual, plan, rng.integers(0, 4, count))],
            "phone": np.array(["android", "ios", "other"])[rng.choice(3, count, p=[0.6, 0.35, 0.05])],
        }
    )


def friendships(
    rng: np.random.Generator, plans: np.ndarray, ids: np.ndarray, mean_degree: float
) -> pd.DataFrame:
    """Draw edges, three quarters of them between people of one plan."""
    count = int(len(ids) * mean_degree / 2)
    source = rng.integers(0, len(ids), count)
    target = rng.integers(0, len(ids), count)
    for i in np.flatnonzero(rng.random(count) < 0.75):
        target[i] = rng.choice(np.flatnonzero(plans == plans[source[i]]))
    keep = source != target
    calls = rng.integers(1, 30, count)
    return pd.DataFrame({"source": ids[source[keep]], "target": ids[target[keep]], "weight": calls[keep]})


def write(folder: Path, nodes: pd.DataFrame, edges: pd.DataFrame) -> None:
    """Write one folder of tables."""
    folder.mkdir(exist_ok=True)
    nodes.to_csv(folder / "nodes.csv", index=False)
    edges.to_csv(folder / "edges.csv", index=False)


if __name__ == "__main__":
    rng = np.random.default_rng(7)
    town = people(rng, 600, "p")
    edges = friendships(rng, town["label"].to_numpy(), town["id"].to_numpy(), 6)
    town.loc[rng.random(len(town)) < 0.2, "label"] = None  # a fifth never told us
    write(HERE / "town", town, edges)
    new = people(rng, 80, "n")
    new_edges = friendships(rng, new["label"].to_numpy(), new["id"].to_numpy(), 5)
    new.loc[:5, "district"] = "airport"  # a district the town did not have
    write(HERE / "newcomers", new.drop(columns="label"), new_edges)
