# fish completion for cframefs(1)

set -l options ro rw names=strip names=keep b2nd=npy b2nd=flat b2nd=chunks detect=suffix detect=content offset= \
    beta_bitshuffle=new beta_bitshuffle=old \
    cache_size= readahead= workers= codec=blosclz codec=lz4 codec=lz4hc codec=zlib codec=zstd clevel= filter=auto filter=none \
    filter=shuffle filter=bitshuffle filter=delta filter=bytedelta typesize= chunksize= blocksize= \
    new_npy=frame new_npy=b2nd checksums=on checksums=keep checksums=off dirty_limit= \
    commit_interval= writeback=off writeback=on fill_pages=on fill_pages=off passthrough=auto passthrough=off stats=off stats=on attr_timeout= \
    entry_timeout= uid= gid= umask= \
    mkdir nonempty remount idle_timeout= cache_timeout= log= log=syslog log_level=error log_level=warning \
    log_level=info log_level=debug sandbox=auto sandbox=off sandbox=strict endpoint= region= profile= unsigned \
    token_file= ca_file= cache_dir= cache_disk= remote_ttl= remote_timeout= remote_index=off remote_index=on allow_other allow_root \
    default_permissions auto_unmount fsname= subtype= max_read= suid nosuid dev nodev exec noexec async sync dirsync \
    noatime context= fscontext= defcontext= rootcontext=

complete -c cframefs -x -s o -d 'Mount options' -a "(__fish_append , $options)"
complete -c cframefs -s f -d 'Stay in the foreground'
complete -c cframefs -s d -d 'Debug output'
complete -c cframefs -s s -d 'One thread'
complete -c cframefs -s h -l help -d 'Print the options'
complete -c cframefs -s V -l version -d 'Print the version'
