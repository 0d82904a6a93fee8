#!/usr/bin/env bash
# A scheduler and workers by Dask's own commands. Every line is for the checkout, which all machines have mounted at the
# same path, in the environment that sentfold is installed in. CLUSTER is the name of the scheduler's machine.
set -euo pipefail
. flows/examples/dask-tls.sh # in every terminal

# On the scheduler's machine.
python -m dask scheduler --protocol tls --port 8786 &

# On each machine that is to work: one process for each stage that may run there at a time.
python -m dask worker "tls://$CLUSTER:8786" --nworkers 2 --nthreads 1 --memory-limit 0 --local-directory /scratch &

# On any of them.
sentfold run --suite paper --runner dask --address "tls://$CLUSTER:8786" --jobs 4
