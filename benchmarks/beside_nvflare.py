"""Federated k-means of NVFlare, for `benchmarks.beside`; runs in an environment of its own.

    python beside_nvflare.py FOLDER CLUSTERS ROUNDS

Job and aggregation are NVFlare's (``KMeansFedAvgRecipe``: mini-batch k-means with counts,
as in its example sklearn-kmeans). A client does what the example's does: k-means++ seeds
of its rows in round 0, then one pass of ``MiniBatchKMeans`` from the centres that came.
Clients read ``site-N.npy``, and note the last centres in ``centres.npy`` and the bytes of
arrays that they sent in ``site-N.bytes``.
"""

import sys
import time
from pathlib import Path

import numpy as np


def serve(folder: Path, n_clusters: int, rounds: int) -> None:
    """Run the job in NVFlare's simulator; print seconds."""
    from nvflare.app_opt.sklearn import KMeansFedAvgRecipe
    from nvflare.recipe import SimEnv

    parties = len(list(folder.glob("site-*.npy")))
    recipe = KMeansFedAvgRecipe(
        name="kmeans",
        min_clients=parties,
        num_rounds=rounds + 1,  # clients see centres a round after they were made
        n_clusters=n_clusters,
        train_script=str(Path(__file__).resolve()),
        train_args=f"--client {folder}",
    )
    begin = time.perf_counter()
    env = SimEnv(num_clients=parties, workspace_root=str(folder / "workspace"))
    recipe.execute(env)
    print(f"seconds {time.perf_counter() - begin:.3f}")


def take_part(folder: Path) -> None:
    """Answer as a client until there are no rounds."""
    import nvflare.client as flare
    from sklearn.cluster import MiniBatchKMeans, kmeans_plusplus

    flare.init()
    site = flare.get_site_name()
    X, sent, n_clusters = np.load(folder / f"{site}.npy"), 0, 0
    while flare.is_running():
        model = flare.receive()
        if model is None:
            break
        if model.current_round == 0:
            n_clusters = model.params["n_clusters"]
            centres, _ = kmeans_plusplus(X, n_clusters=n_clusters, random_state=0)
            params = {"center": centres, "count": None}
        else:
            start = np.asarray(model.params["center"])
            np.save(folder / f"{site}-centres.npy", start)
            fitted = MiniBatchKMeans(
                n_clusters=n_clusters,
                batch_size=len(X),
                max_iter=1,
                init=start,
                n_init=1,
                reassignment_ratio=0,
                random_state=0,
            ).fit(X)
            count = fitted._counts  # noqa: SLF001  as NVFlare's example reads it
            params = {"center": fitted.cluster_centers_, "count": count}
        sent += sum(each.nbytes for each in params.values() if each is not None)
        (folder / f"{site}.bytes").write_text(str(sent))
        flare.send(flare.FLModel(params=params, metrics={"metrics": 0.0}))


if __name__ == "__main__":
    if sys.argv[1] == "--client":
        take_part(Path(sys.argv[2]))
    else:
        serve(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
