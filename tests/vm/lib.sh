# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by the cases: . "$VM_LIB"
set -euo pipefail

guest_siw=10.0.2.15    # siw0 on eth0; from inside the guest traffic to it takes siwlo
guest_rxe=10.9.0.1     # rxe0 on a veth
host_from_guest=10.0.2.2

fail() { echo "FAILED: $*" >&2; exit 1; }

# guest CMD...: a shell command line in the guest.
guest() { "$VM" exec "$@"; }

# equal WHAT FOUND WANTED
equal() { [ "$2" = "$3" ] || fail "$1: found '$2', wanted '$3'"; }

# wait_for SECONDS WHAT CMD...: until CMD succeeds.
wait_for() {
  local until=$((SECONDS + $1)) what=$2
  shift 2
  until "$@"; do
    [ $SECONDS -lt $until ] || fail "$what: not within the time"
    read -rt 0.2 <> <(:) || true
  done
}

# ready_line FILE SECONDS: waits for a server's "ready URL" line in FILE and prints the URL.
ready_line() {
  wait_for "$2" "a ready line in $1" grep -q '^ready ' "$1"
  sed -n 's/^ready //p' "$1" | head -n 1
}

# kernel_mount ADDRESS DIR [OPTIONS]: the kernel's client mounts ADDRESS:/ over RDMA in the guest.
kernel_mount() {
  guest "mkdir -p $2 && timeout 60 mount -t nfs -o proto=rdma,port=20049,vers=4.1,sec=sys${3:+,$3} $1:/ $2" ||
    fail "kernel client cannot mount $1"
}
