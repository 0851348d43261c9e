#!/bin/sh
# The tests on every Python that the wheels allow, with the oldest and the newest versions of what packtool needs.
#
#   scripts/test_matrix.sh [PYTHON ...]      default: 3.11 3.12 3.13 3.14
#
# Needs uv. A Python that uv does not find, or for which some wheel is missing, is named and left out; a failed test is an
# error. TESTS=... names the tests to run, and UV_... what uv shall do.
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
failed=0
for python in ${*:-3.11 3.12 3.13 3.14}; do
    for resolution in lowest-direct highest; do
        name="Python $python, $resolution"
        environment="$place/$python-$resolution"
        if ! uv venv -q --no-python-downloads --python "$python" "$environment" 2>"$place/why"; then
            echo "left out: $name: $(tail -1 "$place/why")"
            continue
        fi
        if ! uv pip install -q --python "$environment/bin/python" --only-binary :all: --no-binary packtool \
            --resolution "$resolution" -e "$root" --group "$root/pyproject.toml:dev" 2>"$place/why"; then
            echo "left out: $name: $(grep -m1 -i 'no wheels\|because\|error' "$place/why")"
            continue
        fi
        if (cd "$root" && "$environment/bin/python" -m pytest -q -x -p no:cacheprovider \
            -m "not slow and not interop and not browser" ${TESTS:-tests/test_golden.py tests/test_laws.py tests/cli tests/text/corpus tests/formats tests/engines} \
            >"$place/log" 2>&1); then
            echo "passed: $name: $("$environment/bin/python" --version)"
        else
            echo "FAILED: $name" && tail -30 "$place/log"
            failed=1
        fi
    done
done
exit $failed
