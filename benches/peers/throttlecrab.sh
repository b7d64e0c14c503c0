#!/usr/bin/env bash
# Starts throttlecrab-server on the Redis protocol and stays until it is killed:
# benches/src/throttle measures it with the client that measures all others.
#
#   bash benches/peers/throttlecrab.sh PORT
#
# It is built once, outside the clone, in the user's cache (a few minutes); that
# needs protoc, which is installed by apt (as root; else install it yourself).
set -euo pipefail
port=${1:?a port}
version=0.4.40
cache=${XDG_CACHE_HOME:-$HOME/.cache}/outflow-bench/throttlecrab-$version
binary=$cache/bin/throttlecrab-server

if [ ! -x "$binary" ]; then
  if ! command -v protoc >/dev/null; then
    echo "installing protobuf-compiler" >&2
    DEBIAN_FRONTEND=noninteractive apt-get install -y -q protobuf-compiler >&2 ||
      { echo "protoc is needed: apt-get install protobuf-compiler" >&2; exit 1; }
  fi
  echo "building throttlecrab-server" >&2
  env -u CARGO_TARGET_DIR cargo install -q --locked --version "$version" throttlecrab-server --root "$cache" >&2
fi
exec "$binary" --redis --redis-host 127.0.0.1 --redis-port "$port" \
  --store-capacity 200000 --log-level error
