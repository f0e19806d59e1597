# bash completion for cframe(1)

_cframe() {
  local cur prev words cword
  _init_completion || return

  local subcommand='' word
  for word in "${words[@]:1:cword-1}"; do
    case $word in
      ls | info | cat | diff | bench | verify | pack | unpack | convert | compact | seal | map | top | repair | get-meta | set-meta | index)
        subcommand=$word
        break
        ;;
    esac
  done

  case $prev in
    --offset | --length | --frame-offset | --workers | --clevel | --wait | --sample | --seconds | --interval | --count) return ;;
    --typesize | --chunksize | --blocksize)
      mapfile -t COMPREPLY < <(compgen -W 'auto' -- "$cur")
      return
      ;;
    --to)
      _filedir -d
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
      mapfile -t COMPREPLY < <(compgen -W 'text json bytes msgpack raw' -- "$cur")
      return
      ;;
    --beta-bitshuffle)
      mapfile -t COMPREPLY < <(compgen -W 'new old' -- "$cur")
      return
      ;;
    --checksums)
      mapfile -t COMPREPLY < <(compgen -W 'on keep off' -- "$cur")
      return
      ;;
    --b2nd)
      mapfile -t COMPREPLY < <(compgen -W 'npy flat chunks' -- "$cur")
      return
      ;;
  esac

  local options
  case $subcommand in
    '') options='ls info cat diff bench verify pack unpack convert compact seal map top repair get-meta set-meta index --help --version' ;;
    ls) options='--help --json --recursive --tree' ;;
    info) options='--help --json --all --frame-offset' ;;
    cat) options='--help --offset --length --frame-offset --b2nd --workers' ;;
    diff) options='--help --b2nd --json --quiet --workers' ;;
    bench) options='--help --codec --clevel --filter --typesize --chunksize --blocksize --sample --seconds --json' ;;
    verify) options='--help --json --quiet --recursive --frame-offset --workers' ;;
    pack) options='--help --codec --clevel --filter --typesize --chunksize --blocksize --checksums --tune --tune=balanced --tune=ratio --tune=speed --tune=random --tune=remote --multiple --recursive --to --force --rm --json --quiet --workers' ;;
    unpack) options='--help --frame-offset --b2nd --multiple --recursive --to --force --rm --json --quiet --workers' ;;
    compact) options='--help --json --quiet --recursive --checksums --wait --workers' ;;
    seal) options='--help --trust --json --quiet --recursive --wait --workers' ;;
    map) options='--help --output --json --verify --frame-offset --force --workers' ;;
    top) options='--help --interval --count --once' ;;
    repair) options='--help --json --quiet --wait' ;;
    get-meta) options='--help --fixed --json --raw --frame-offset' ;;
    index) options='--help --output --force --json' ;;
    set-meta) options='--help --from --type --json --msgpack --remove --fixed --wait' ;;
    convert) options='--help --frame-offset --beta-bitshuffle --codec --clevel --filter --typesize --chunksize --blocksize --checksums --tune=remote --multiple --recursive --to --force --rm --json --quiet --workers' ;;
  esac
  if [[ $subcommand == '' || $cur == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$options" -- "$cur")
  else
    _filedir
    # An output in a bucket.
    if [[ $subcommand == pack || $subcommand == convert ]] && [[ -n $cur && s3:// == "$cur"* ]]; then
      COMPREPLY+=('s3://')
      compopt -o nospace
    fi
  fi
} && complete -F _cframe cframe
