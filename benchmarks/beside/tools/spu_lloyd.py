"""Lloyd's k-means on secret shares by SPU (ABY3, 3 processes). Arguments: FOLDER."""

import subprocess
import sys
from pathlib import Path

import jax.numpy as jnp
import lloyd
import numpy as np
import spu
from spu import libspu
from spu.utils import frontend

N_COMPUTING, PORT = 3, 19_500
FOLDER = Path(sys.argv[1])
START = lloyd.start(FOLDER).astype(np.float32)
CONFIG = libspu.RuntimeConfig(
    protocol=libspu.ProtocolKind.ABY3,
    field=libspu.FieldType.FM64,
    fxp_fraction_bits=18,
)


def update(X, V):
    """Return the means of the rows nearest to each centroid."""
    nearest = jnp.argmin(jnp.sum(V * V, 1)[None, :] - 2 * jnp.dot(X, V.T), axis=1)
    own = (nearest[:, None] == jnp.arange(len(START))[None, :]).astype(jnp.float32)
    return jnp.dot(own.T, X) / jnp.sum(own, 0)[:, None]


def save(name, share):
    """Write the description of a share, and each of its chunks."""
    (FOLDER / name).mkdir()
    for number, chunk in enumerate([share.meta, *share.share_chunks]):
        (FOLDER / name / f"{number:06}").write_bytes(chunk)


def read(name):
    """Return a share that save has written."""
    share = libspu.Share()
    files = sorted((FOLDER / name).iterdir())
    share.meta, *share.share_chunks = [file.read_bytes() for file in files]
    return share


def run_computing_party(rank):
    """Run one of the computing parties, and save its share of the last centroids."""
    X = np.load(FOLDER / "all.npy").astype(np.float32)  # only its shape is used
    secret = [libspu.Visibility.VIS_SECRET] * 2
    program, _ = frontend.compile(
        *(frontend.Kind.JAX, update, (X, START), {}, ["x", "v"], secret),
        lambda outputs: [f"o{number}" for number in range(len(outputs))],
    )
    description = libspu.link.Desc()
    description.recv_timeout_ms = description.http_timeout_ms = 600_000
    for number in range(N_COMPUTING):
        description.add_party(f"p{number}", f"127.0.0.1:{PORT + number}")
    link = libspu.link.create_brpc(description, rank)
    runtime = spu.Runtime(link, CONFIG)
    runtime.set_var("x", read(f"spu-x-{rank}"))
    runtime.set_var("v", read(f"spu-v-{rank}"))
    for _ in range(lloyd.settings(FOLDER)[1]):
        runtime.run(program)
        runtime.set_var("v", runtime.get_var(program.output_names[0]))
    save(f"spu-o-{rank}", runtime.get_var("v"))
    link.stop_link()


def main():
    """Share out all rows as parties would; reconstruct only the last centroids."""
    io = spu.Io(N_COMPUTING, CONFIG)
    X = np.load(FOLDER / "all.npy").astype(np.float32)
    for name, value in (("x", X), ("v", START)):
        shares = io.make_shares(value, libspu.Visibility.VIS_SECRET)
        for number, share in enumerate(shares):
            save(f"spu-{name}-{number}", share)
    processes = [
        subprocess.Popen([sys.executable, __file__, str(FOLDER), str(number)])
        for number in range(N_COMPUTING)
    ]
    codes = [process.wait() for process in processes]
    if any(codes):
        sys.exit(max(codes))
    V = io.reconstruct([read(f"spu-o-{number}") for number in range(N_COMPUTING)])
    lloyd.write(FOLDER, V, lloyd.settings(FOLDER)[1])


if sys.argv[2:]:
    run_computing_party(int(sys.argv[2]))
else:
    main()
