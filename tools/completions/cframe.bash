# bash completion for cframe(1)

_cframe() {
  local cur prev words cword
  _init_completion || return

  local subcommand='' word
  for word in "${words[@]:1:cword-1}"; do
    case $word in
      info | cat | verify)
        subcommand=$word
        break
        ;;
    esac
  done

  case $prev in
    --offset | --length | --frame-offset | --workers) return ;;
    --b2nd)
      mapfile -t COMPREPLY < <(compgen -W 'npy flat chunks' -- "$cur")
      return
      ;;
  esac

  local options
  case $subcommand in
    '') options='info cat verify --help --version' ;;
    info) options='--help --json --all --offset' ;;
    cat) options='--help --offset --length --frame-offset --b2nd --workers' ;;
    verify) options='--help --json --quiet --offset --workers' ;;
  esac
  if [[ $subcommand == '' || $cur == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$options" -- "$cur")
  else
    _filedir
  fi
} && complete -F _cframe cframe
