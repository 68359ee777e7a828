# Completion of gpuc's tools in bash. A tool's --help says which flags it has and what they take, so that nothing is said here again.
# Installed under each tool's name, where bash-completion finds it; or: source tools/completion.bash

# Of `--help` of $1: "--seed=N", "--resume", "--shard=optimizer|gradients", a line each.
_gpuc_flags() {
  "$1" --help 2>/dev/null | sed -nE 's/^ +(-[A-Za-z], )?(--[a-z][a-z-]*)(\[?=([^] ]*)\]?)?( .*)?$/\2\3/p'
}

_gpuc() {
  local tool=$1 word=${COMP_WORDS[COMP_CWORD]} flag= spelling choices
  COMPREPLY=()
  # Bash makes words of `--flag=value` by its COMP_WORDBREAKS: the flag, "=", and what is there of the value.
  if [[ $word == = ]]; then
    flag=${COMP_WORDS[COMP_CWORD - 1]} word=
  elif ((COMP_CWORD > 1)) && [[ ${COMP_WORDS[COMP_CWORD - 1]} == = ]]; then
    flag=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  if [[ $flag == --* ]]; then
    spelling=$(_gpuc_flags "$tool" | grep -m1 -E "^$flag\[?=")
    choices=${spelling#*=}
    choices=${choices%]}
    if [[ $choices == *"|"* ]]; then # Those in small letters are words, the others stand for something.
      mapfile -t COMPREPLY < <(compgen -W "$(tr '|' '\n' <<<"$choices" | grep -E '^[a-z0-9_]+$')" -- "$word")
    fi
    return
  fi
  if [[ $word == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$(_gpuc_flags "$tool" | sed -E 's/\[?=.*/=/')" -- "$word")
    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
  elif [[ ${tool##*/} == gpuc-model && $COMP_CWORD -eq 1 ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$("$tool" --list 2>/dev/null | sed -nE 's/^([a-z0-9-]+):.*/\1/p')" -- "$word")
  fi
  return 0
}

# Where nothing of that fits, files.
complete -o default -F _gpuc gpuc-{calibrate,compile,generate,import-onnx,inspect,lsp-server,model,opt,place-buffers,reduce,run,simulate,train}
