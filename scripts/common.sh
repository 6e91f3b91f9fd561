# SPDX-License-Identifier: Apache-2.0
# Sourced by the scripts beside it: where the tree is, and how to fail in one line.
# shellcheck shell=bash
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
program=$(basename "$0")

say() { printf '%s\n' "$*" >&2; }

die() {
  say "$program: $*"
  exit 1
}

usage_error() {
  say "$program: $*"
  sed -n '/^# usage:/,/^[^#]/{/^#/{s/^# \{0,1\}//;p}}' "$0" >&2
  exit 2
}

# Several compilers' worth of objects are shared through ccache between flavours and between clones.
export CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1

# configure PRESET [cmake arguments]
configure() {
  local preset=$1
  shift
  (cd "$root" && cmake --preset "$preset" "$@" >/dev/null) || die "the configuration of preset $preset failed"
}

# compile PRESET [TARGET...]: without targets, those that the preset names.
compile() {
  local preset=$1 quiet=() targets=()
  shift
  [ -t 1 ] || quiet=(-- --quiet)
  [ $# = 0 ] || targets=(--target "$@")
  (cd "$root" && cmake --build --preset "$preset" -j "$(nproc)" "${targets[@]}" "${quiet[@]}") ||
    die "preset $preset does not build"
}
