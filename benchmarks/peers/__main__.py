"""Make the environments of the peers named, and print the Python of each."""

import sys

from benchmarks.peers import environment

for peer in sys.argv[1:]:
    print(environment(peer))
