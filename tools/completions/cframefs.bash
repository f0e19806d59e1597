# bash completion for cframefs(1)

_cframefs() {
  # shellcheck disable=SC2034 # _init_completion sets them all
  local cur prev words cword
  _init_completion -n = || return

  if [[ $prev == -o ]]; then
    local last=${cur##*,} done=''
    [[ $cur == *,* ]] && done=${cur%,*},
    local choices
    case $last in
      names=*) choices='names=strip names=keep' ;;
      b2nd=*) choices='b2nd=npy b2nd=flat b2nd=chunks' ;;
      detect=*) choices='detect=suffix detect=content' ;;
      beta_bitshuffle=*) choices='beta_bitshuffle=new beta_bitshuffle=old' ;;
      codec=*) choices='codec=blosclz codec=lz4 codec=lz4hc codec=zlib codec=zstd' ;;
      filter=*) choices='filter=auto filter=none filter=shuffle filter=bitshuffle filter=delta filter=bytedelta' ;;
      checksums=*) choices='checksums=on checksums=keep checksums=off' ;;
      new_npy=*) choices='new_npy=frame new_npy=b2nd' ;;
      stats=*) choices='stats=off stats=on' ;;
      sandbox=*) choices='sandbox=auto sandbox=off sandbox=strict' ;;
      log_level=*) choices='log_level=error log_level=warning log_level=info log_level=debug' ;;
      remote_index=*) choices='remote_index=off remote_index=on' ;;
      fill_pages=*) choices='fill_pages=on fill_pages=off' ;;
      passthrough=*) choices='passthrough=auto passthrough=off' ;;
      writeback=*) choices='writeback=off writeback=on' ;;
      *)
        choices='ro rw names= b2nd= detect= offset= beta_bitshuffle= cache_size= readahead= workers= codec= clevel= filter=
          typesize= chunksize= blocksize= new_npy= checksums= dirty_limit= commit_interval= writeback= fill_pages= passthrough=
          stats= attr_timeout= entry_timeout= uid= gid= umask= mkdir nonempty remount idle_timeout= cache_timeout= log= log_level= sandbox=
          endpoint= region= profile= unsigned token_file= ca_file= cache_dir= cache_disk= remote_ttl= remote_timeout= remote_index=
          allow_other allow_root default_permissions auto_unmount fsname= subtype= max_read= suid nosuid
          dev nodev exec noexec async sync dirsync noatime context= fscontext= defcontext= rootcontext='
        ;;
    esac
    mapfile -t COMPREPLY < <(compgen -P "$done" -W "$choices" -- "$last")
    [[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace
    return
  fi
  if [[ $cur == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W '-o -f -d -s -h -V --help --version' -- "$cur")
  else
    _filedir
  fi
} && complete -F _cframefs cframefs
