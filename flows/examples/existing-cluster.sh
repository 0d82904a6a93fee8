#!/usr/bin/env bash
# A scheduler and workers by Dask's own commands, in the environment that sentfold is installed in. CLUSTER is the name
# of the scheduler's machine, REPOSITORY what `git clone` takes.
set -euo pipefail
. flows/examples/dask-tls.sh # in every terminal; SENTFOLD_KEY names the copied key on other machines

# On the scheduler's machine, in a clone: the scheduler imports the code of the tasks.
python -m flows.launch dask scheduler --protocol tls --port 8786 &

# On each machine that is to work: a clone and a process for each stage that may run there at a time.
git clone --quiet "$REPOSITORY" worker-1 && cd worker-1
python -m flows.launch dask worker "tls://$CLUSTER:8786" --nthreads 1 --memory-limit 0 &

# In the checkout of the run.
sentfold run --suite paper --address "tls://$CLUSTER:8786" --jobs 4 --remote shared
