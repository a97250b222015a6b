#!/bin/sh
# Make a virtual environment in the folder $1 with $PYTHON, else the first Python that will do.
set -eu
folder=$1

good() {
    "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 15))' 2>/dev/null
}

if [ -n "${PYTHON:-}" ]; then
    if ! good "$PYTHON"; then
        echo "PYTHON=$PYTHON is not Python 3.11 to 3.15." >&2
        exit 1
    fi
else
    for name in python3 python3.14 python3.13 python3.12 python3.11 python3.15; do
        if good "$name"; then PYTHON=$name && break; fi
    done
    if [ -z "${PYTHON:-}" ]; then
        echo "No Python 3.11 to 3.15 found. Install one, or name it: make setup PYTHON=/path/to/python3" >&2
        exit 1
    fi
fi

# Debian and Ubuntu keep these two modules in a package of their own.
if ! "$PYTHON" -c 'import venv, ensurepip' 2>/dev/null; then
    package=$("$PYTHON" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        apt-get update -q && apt-get install -y -q "$package"
    else
        echo "$PYTHON lacks the venv module. Install it first: sudo apt-get install $package" >&2
        exit 1
    fi
fi

# A half-made environment would look finished to make.
"$PYTHON" -m venv --clear "$folder" || { rm -rf "$folder" && exit 1; }
