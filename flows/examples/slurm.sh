#!/usr/bin/env bash
#SBATCH --job-name=sentfold
#SBATCH --ntasks=5
#SBATCH --cpus-per-task=4
#SBATCH --mem-per-cpu=4G
#SBATCH --time=12:00:00
# Not tried. One job: the first task runs the scheduler and the flow; the others work. Submit it from the checkout, which
# has to be on a file system that the nodes share: sbatch flows/examples/slurm.sh
set -euo pipefail
source .venv/bin/activate
. flows/examples/dask-tls.sh # Slurm hands the settings on to the workers

scheduler="tls://$(hostname -f):8786"
python -m dask scheduler --protocol tls --port 8786 &
srun --ntasks=4 python -m dask worker "$scheduler" --nthreads 1 --memory-limit 0 --local-directory "${TMPDIR:-/tmp}" &
sentfold run --suite paper --runner dask --address "$scheduler" --jobs 4
