"""K-means by Flower, for `benchmarks.beside`; runs in an environment of its own.

    python beside_flower.py FOLDER CLUSTERS ROUNDS

Flower brings no k-means. The strategy is its ``FedAvg`` as it is (means weighted by rows);
a client runs one iteration of scikit-learn's ``KMeans`` from the centres that came. The
first centres are k-means++ seeds of the first party's rows. Simulated by Flower's own
engine (Ray).
"""

import os
import sys
import time
from pathlib import Path

import numpy as np
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation
from sklearn.cluster import KMeans, kmeans_plusplus

client = ClientApp()
server = ServerApp()


@client.train()
def train(message: Message, context: Context) -> Message:
    """Return centres after one iteration on this party's rows."""
    folder = Path(os.environ["BESIDE_FOLDER"])
    number = int(context.node_config["partition-id"])
    X = np.load(folder / f"site-{number + 1}.npy")
    [start] = message.content["arrays"].to_numpy_ndarrays()
    fitted = KMeans(len(start), init=start, n_init=1, max_iter=1).fit(X)
    content = RecordDict(
        {
            "arrays": ArrayRecord([fitted.cluster_centers_]),
            "metrics": MetricRecord({"num-examples": len(X)}),
        }
    )
    return Message(content=content, reply_to=message)


@server.main()
def serve(grid: Grid, _: Context) -> None:
    """Let Flower's strategy run, and keep the last centres."""
    folder = Path(os.environ["BESIDE_FOLDER"])
    n_clusters, rounds = int(sys.argv[2]), int(sys.argv[3])
    seeds, _ = kmeans_plusplus(
        np.load(folder / "site-1.npy"), n_clusters, random_state=0
    )
    strategy = FedAvg(fraction_train=1.0, fraction_evaluate=0.0)
    ended = strategy.start(
        grid=grid, initial_arrays=ArrayRecord([seeds]), num_rounds=rounds
    )
    [centres] = ended.arrays.to_numpy_ndarrays()
    np.save(folder / "centres.npy", centres)


def main() -> None:
    """Simulate; print seconds."""
    folder = Path(sys.argv[1])
    os.environ["BESIDE_FOLDER"] = str(folder)
    parties = len(list(folder.glob("site-?.npy")))
    begin = time.perf_counter()
    run_simulation(server_app=server, client_app=client, num_supernodes=parties)
    print(f"seconds {time.perf_counter() - begin:.3f}")


if __name__ == "__main__":
    main()
