#!/usr/bin/env bash
# A scheduler and workers by Dask's own commands; each in the environment that sentfold is installed in.
set -euo pipefail

# On one machine that all others reach; CLUSTER is its name there.
prefect server start --host 0.0.0.0 &
dask scheduler --port 8786 &

# On each machine that is to work: one process for each stage that may run there at a time.
PREFECT_API_URL="http://$CLUSTER:4200/api" \
    dask worker "tcp://$CLUSTER:8786" --nworkers 2 --nthreads 1 --memory-limit 0 --local-directory /scratch &

# In the checkout, which every machine has mounted at the same path.

PREFECT_API_URL="http://$CLUSTER:4200/api" \
    sentfold run --suite paper --runner dask --address "tcp://$CLUSTER:8786" --jobs 4
