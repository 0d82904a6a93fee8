#!/usr/bin/env bash
#SBATCH --job-name=sentfold
#SBATCH --ntasks=5
#SBATCH --cpus-per-task=4
#SBATCH --mem-per-cpu=4G
#SBATCH --time=12:00:00
# Not tried. One job: the first task runs the scheduler, the Prefect server and the flow; the others work. Submit it from
# the checkout, which has to be on a file system that the nodes share: sbatch flows/examples/slurm.sh
set -euo pipefail
source .venv/bin/activate

here=$(hostname -f)
export PREFECT_API_URL="http://$here:4200/api"
prefect server start --host 0.0.0.0 &
dask scheduler --port 8786 &
srun --ntasks=4 dask worker "tcp://$here:8786" --nthreads 1 --memory-limit 0 --local-directory "${TMPDIR:-/tmp}" &

until curl --silent --fail "$PREFECT_API_URL/health" >/dev/null; do sleep 1; done
sentfold run --suite paper --runner dask --address "tcp://$here:8786" --jobs 4
