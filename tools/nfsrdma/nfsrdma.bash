# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Completion for nfsrdma(1). The options are asked from the program itself, so they are those that it knows.

_nfsrdma() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
  local commands='ls stat cat get put mkdir rm mv ln ping info options version' command='' word flags
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case " $commands " in *" $word "*) command=$word && break ;; esac
  done
  COMPREPLY=()
  if [ "$previous" = -o ]; then
    # The last word of a list; what stands before it is kept.
    local kept=${current%"${current##*,}"}
    mapfile -t COMPREPLY < <(compgen -P "$kept" -W "$(nfsrdma options --names 2>/dev/null)" -- "${current##*,}")
    compopt -o nospace 2>/dev/null
    return
  fi
  if [ -z "$command" ]; then
    mapfile -t COMPREPLY < <(compgen -W "$commands --json -o -v --help --version" -- "$current")
    return
  fi
  if [[ $current == -* ]]; then
    flags='--json -o -v --help'
    case $command in
      ls) flags+=' -l -d' ;;
      stat) flags+=' -L' ;;
      get | put) flags+=' -r' ;;
      mkdir) flags+=' -p -m' ;;
      rm) flags+=' -r -f' ;;
      ln) flags+=' -s' ;;
      options) flags+=' --names --manual' ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$flags" -- "$current")
    return
  fi
  case $command in
    get | put) mapfile -t COMPREPLY < <(compgen -f -W 'nfsrdma://' -- "$current") ;;
    options | version) ;;
    *) mapfile -t COMPREPLY < <(compgen -W 'nfsrdma://' -- "$current") && compopt -o nospace 2>/dev/null ;;
  esac
}

complete -F _nfsrdma nfsrdma
