"""Lloyd's k-means in NVFlare: a controller adds sums and counts. Arguments: FOLDER."""

import sys

import lloyd
import numpy as np
import nvflare.client as flare
from nvflare.app_common.abstract.fl_model import FLModel
from nvflare.app_common.workflows.model_controller import ModelController
from nvflare.client.config import ExchangeFormat
from nvflare.job_config.api import FedJob
from nvflare.job_config.script_runner import FrameworkType, ScriptRunner


class Controller(ModelController):
    """Sends the centroids, adds the answers up, and moves the centroids."""

    def __init__(self, folder):
        super().__init__()
        self.folder = folder

    def run(self):
        """Run all rounds."""
        _, updates = lloyd.settings(self.folder)
        V = lloyd.start(self.folder)
        for number in range(updates):
            answers = self.send_model_and_wait(
                targets=self.sample_clients(),
                data=FLModel(params={"centroids": V}, current_round=number),
            )
            sums = sum(answer.params["sums"] for answer in answers)
            counts = sum(answer.params["counts"] for answer in answers)
            V = lloyd.move_centroids(sums, counts, V)
        lloyd.write(self.folder, V, updates)


def answer(folder):
    """Run a site, which answers each message with sums and counts."""
    flare.init()
    X = lloyd.site(folder, flare.get_site_name().removeprefix("site-"))
    while flare.is_running() and (message := flare.receive()) is not None:
        sums, counts = lloyd.local_sums(X, np.asarray(message.params["centroids"]))
        flare.send(flare.FLModel(params={"sums": sums, "counts": counts}))


def main(folder):
    """Run the job with a site for each party."""
    from nvflare_lloyd import Controller as Importable

    n_parties, _ = lloyd.settings(folder)
    job = FedJob(name="lloyd", min_clients=n_parties)
    job.to_server(Importable(folder))
    for number in range(1, n_parties + 1):
        runner = ScriptRunner(
            script=__file__,
            script_args=f"{folder} site",
            framework=FrameworkType.NUMPY,
            server_expected_format=ExchangeFormat.NUMPY,
        )
        job.to(runner, f"site-{number}")
    job.simulator_run(f"{folder}/nvflare", threads=n_parties)


if __name__ == "__main__":
    (answer if sys.argv[2:] else main)(sys.argv[1])
