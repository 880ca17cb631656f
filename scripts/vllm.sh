#!/usr/bin/env bash
# Tests of the vLLM connector with a real engine and model; makes the test bed when there is none. Arguments go to pytest.
set -euo pipefail

root=$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")
bed=$("$root/python/testbed/setup")
"$root/orbitkv" --version >/dev/null # builds what is missing
cd "$root/python"
exec "$bed/venv/bin/python" -m pytest -p no:cacheprovider --timeout 300 tests/vllm_engine \
  --junitxml target/surefire-reports/TEST-vllm.xml "$@"
