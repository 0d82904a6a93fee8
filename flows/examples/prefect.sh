# A Prefect server for this account alone, and its clients. Read this file in each of their terminals, in the checkout:
#     . flows/examples/prefect.sh
# For another port than 4200 set it first, in each terminal: export PREFECT_SERVER_API_PORT=4300
# The server listens on loopback and asks for a password, which is made once, in a file that only this account can read:
# whoever has it can have the worker run anything. Pages of other origins cannot call the server. No telemetry.
sentfold_password="${PREFECT_HOME:-$HOME/.prefect}/sentfold-password"
# Prefect's database is in the same folder: it holds logs, the secrets of notifications, and the key that opens them.
mkdir -p "$(dirname "$sentfold_password")" && chmod 700 "$(dirname "$sentfold_password")" || return 1
if [ ! -s "$sentfold_password" ]; then
    rm -f "$sentfold_password"
    # -I: a folder of data in the checkout could be called `secrets`.
    (umask 077 && python3 -I -c 'import secrets; print("sentfold:" + secrets.token_urlsafe(32))' >"$sentfold_password")
fi
if [ ! -s "$sentfold_password" ]; then
    echo "error: no password could be written to $sentfold_password; start no server before this is corrected" >&2
    return 1
fi
PREFECT_API_AUTH_STRING="$(cat "$sentfold_password")"
export PREFECT_API_AUTH_STRING
export PREFECT_SERVER_API_AUTH_STRING="$PREFECT_API_AUTH_STRING"
export PREFECT_SERVER_API_HOST=127.0.0.1
export PREFECT_SERVER_API_PORT="${PREFECT_SERVER_API_PORT:-4200}"
export PREFECT_API_URL="http://127.0.0.1:$PREFECT_SERVER_API_PORT/api"
export PREFECT_UI_API_URL="$PREFECT_API_URL" # what the server's pages call
export PREFECT_SERVER_CORS_ALLOWED_ORIGINS="http://127.0.0.1:$PREFECT_SERVER_API_PORT"
export PREFECT_SERVER_ANALYTICS_ENABLED=false DO_NOT_TRACK=1
