# bash completion for cframe(1)

_cframe() {
  local cur prev words cword
  _init_completion || return

  local subcommand='' word
  for word in "${words[@]:1:cword-1}"; do
    case $word in
      info | cat | verify | pack | unpack | convert | compact | repair | get-meta | set-meta)
        subcommand=$word
        break
        ;;
    esac
  done

  case $prev in
    --offset | --length | --frame-offset | --workers | --clevel | --wait) return ;;
    --typesize | --chunksize | --blocksize)
      mapfile -t COMPREPLY < <(compgen -W 'auto' -- "$cur")
      return
      ;;
    --codec)
      mapfile -t COMPREPLY < <(compgen -W 'blosclz lz4 lz4hc zlib zstd' -- "$cur")
      return
      ;;
    --filter)
      mapfile -t COMPREPLY < <(compgen -W 'auto none shuffle bitshuffle delta bytedelta shuffle+bytedelta' -- "$cur")
      return
      ;;
    --type)
      mapfile -t COMPREPLY < <(compgen -W 'text json bytes raw' -- "$cur")
      return
      ;;
    --b2nd)
      mapfile -t COMPREPLY < <(compgen -W 'npy flat chunks' -- "$cur")
      return
      ;;
  esac

  local options
  case $subcommand in
    '') options='info cat verify pack unpack convert compact repair get-meta set-meta --help --version' ;;
    info) options='--help --json --all --frame-offset' ;;
    cat) options='--help --offset --length --frame-offset --b2nd --workers' ;;
    verify) options='--help --json --quiet --frame-offset --workers' ;;
    pack) options='--help --codec --clevel --filter --typesize --chunksize --blocksize --tune --tune=balanced --tune=ratio --tune=speed --tune=random --force --workers' ;;
    unpack) options='--help --frame-offset --b2nd --force --workers' ;;
    compact) options='--help --quiet --wait' ;;
    repair) options='--help --quiet --wait' ;;
    get-meta) options='--help --fixed --json --raw --frame-offset' ;;
    set-meta) options='--help --from --type --remove --fixed --wait' ;;
    convert) options='--help --frame-offset --beta-bitshuffle --codec --clevel --filter --typesize --chunksize --blocksize --force --workers' ;;
  esac
  if [[ $subcommand == '' || $cur == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$options" -- "$cur")
  else
    _filedir
  fi
} && complete -F _cframe cframe
