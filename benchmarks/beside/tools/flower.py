"""Lloyd's k-means in Flower, plain or with SecAgg+. Arguments: FOLDER [secagg]."""

import os
import sys

import lloyd
import numpy as np
from flwr.client import ClientApp, NumPyClient
from flwr.client.mod import secaggplus_mod
from flwr.common import ndarrays_to_parameters, parameters_to_ndarrays
from flwr.server import ServerApp, ServerConfig
from flwr.server.compat import LegacyContext
from flwr.server.strategy import FedAvg
from flwr.server.workflow import DefaultWorkflow, SecAggPlusWorkflow
from flwr.simulation import run_simulation

# Ray's workers load this file without arguments, but inherit the environment.
FOLDER = os.environ.setdefault("BESIDE_FOLDER", "".join(sys.argv[1:2]))
IS_MASKED = bool(os.environ.setdefault("BESIDE_MASKED", "".join(sys.argv[2:])))
PARTIES, UPDATES = lloyd.settings(FOLDER)
LARGEST = 64.0  # of a coordinate; SecAgg+ clips sums at this times a party's rows


class Lloyd(NumPyClient):
    """A party, which answers with sums and counts."""

    def __init__(self, X):
        self.X = X

    def fit(self, parameters, config):  # noqa: ARG002  Flower calls it
        """Return sums and counts with the weight 1, the same for each party."""
        return list(lloyd.local_sums(self.X, parameters[0])), 1, {}


class Totals(FedAvg):
    """Computes the next centroids from the mean of all answers.

    With SecAgg+ every answer that the strategy sees already is that mean.
    """

    V = lloyd.start(FOLDER)

    def aggregate_fit(self, server_round, results, failures):  # noqa: ARG002  Flower calls it
        """Return the next centroids."""
        answers = [parameters_to_ndarrays(result.parameters) for _, result in results]
        sums, counts = (np.mean(each, axis=0) for each in zip(*answers, strict=True))
        self.V = lloyd.move_centroids(sums, counts, self.V)
        lloyd.write(FOLDER, self.V, server_round)
        return ndarrays_to_parameters([self.V, np.zeros(len(self.V))]), {}


def make_party(context):
    """Return the party of a context."""
    number = int(context.node_config["partition-id"]) + 1
    return Lloyd(lloyd.site(FOLDER, number)).to_client()


server = ServerApp()


@server.main()
def serve(grid, context):
    """Run the rounds."""
    V = Totals.V
    strategy = Totals(
        fraction_fit=1.0,
        fraction_evaluate=0.0,
        min_fit_clients=PARTIES,
        min_available_clients=PARTIES,
        initial_parameters=ndarrays_to_parameters([V, np.zeros(len(V))]),
    )
    masked = SecAggPlusWorkflow(
        num_shares=1.0,
        reconstruction_threshold=2,
        max_weight=1,
        clipping_range=LARGEST * len(lloyd.site(FOLDER, 1)),
        quantization_range=2**26,
        modulus_range=2**32,
    )
    config = ServerConfig(num_rounds=UPDATES)
    legacy = LegacyContext(context=context, config=config, strategy=strategy)
    DefaultWorkflow(fit_workflow=masked if IS_MASKED else None)(grid, legacy)


if __name__ == "__main__":
    mods = [secaggplus_mod] if IS_MASKED else []
    run_simulation(
        server_app=server,
        client_app=ClientApp(client_fn=make_party, mods=mods),
        num_supernodes=PARTIES,
    )
