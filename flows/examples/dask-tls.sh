# TLS for a Dask cluster and those who use it. Read this file in each of their terminals, in the checkout:
#     . flows/examples/dask-tls.sh
# Only who has the key is let in. It is made once, for 30 days, in a file that only this account can read.
sentfold_key="${SENTFOLD_KEY:-$PWD/.dvc/tmp/dask}"
if [ ! -s "$sentfold_key.crt" ]; then
    (umask 077 && mkdir -p "$(dirname "$sentfold_key")" && openssl req -x509 -newkey rsa:3072 -nodes -days 30 \
        -subj /CN=sentfold -keyout "$sentfold_key.key" -out "$sentfold_key.crt" 2>/dev/null)
fi
if [ ! -s "$sentfold_key.crt" ]; then
    echo "error: no key could be written to $sentfold_key; openssl is needed, and a folder that can be written" >&2
    return 1
fi
if command -v openssl >/dev/null && ! openssl x509 -checkend 0 -noout -in "$sentfold_key.crt" >/dev/null 2>&1; then
    echo "error: $sentfold_key.crt has expired. Remove it and $sentfold_key.key, and read this file again; then copy" >&2
    echo "both to the other machines, and read this file in all terminals before you start the cluster again" >&2
    return 1
fi
for role in CLIENT SCHEDULER WORKER; do
    export "DASK_DISTRIBUTED__COMM__TLS__${role}__CERT=$sentfold_key.crt"
    export "DASK_DISTRIBUTED__COMM__TLS__${role}__KEY=$sentfold_key.key"
done
export DASK_DISTRIBUTED__COMM__TLS__CA_FILE="$sentfold_key.crt"
export DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION=true
# Dask's web pages know no certificate: there are none.
export DASK_DISTRIBUTED__SCHEDULER__HTTP__ROUTES='[]' DASK_DISTRIBUTED__WORKER__HTTP__ROUTES='[]'
# Dask looks for modules in its scratch folder first. Its own place is in /tmp, where anybody can put modules.
export DASK_TEMPORARY_DIRECTORY="$PWD/.dvc/tmp/dask-scratch"
(umask 077 && mkdir -p "$DASK_TEMPORARY_DIRECTORY") && chmod 700 "$DASK_TEMPORARY_DIRECTORY"
