"""Options that say how many clusters: several numbers, and which of them counts."""

from __future__ import annotations

import click

choose_option = click.option(
    "--choose",
    metavar="FIGURE",
    help="Of several n_clusters: the figure whose best run counts, e.g. "
    "davies_bouldin; 'later' lets you read the figures first. By default the simplified "
    "silhouette, where the protocol computes it.",
)
choose_within_option = click.option(
    "--choose-within",
    type=click.IntRange(1, 366 * 86_400),
    help="Seconds that you have to choose 'later'; a week by default.",
)
