# shellcheck shell=bash
# Fresh roots of Debian, and commands in them. Sourced, never run; after packages.sh.

# Prints the address of the mirror that this machine's own packages come from; nothing if it is not known.
mirror() {
  local address
  # shellcheck disable=SC2016 # apt-get replaces it
  address=$(apt-get indextargets --format '$(ORIGIN) $(REPO_URI)' 2>/dev/null |
    awk '$1 == "Debian" && $2 !~ /security/ { print $2; exit }') || true
  echo "$address"
}

# Makes the root of a release if it is missing.
make_base() { # RELEASE ROOT
  local release=$1 root=$2
  ensure_packages debootstrap
  if [[ ! -d $root ]]; then
    # An interrupted debootstrap leaves no root.
    rm -rf --one-file-system -- "$root.incomplete"
    local address
    address=$(mirror)
    # Without an address debootstrap takes its own default.
    debootstrap --variant=minbase "$release" "$root.incomplete" ${address:+"$address"}
    mv -- "$root.incomplete" "$root"
  fi
  cp /etc/resolv.conf /etc/hosts "$root/etc/"
}

# Copies the last commit of this tree into a directory that it replaces.
copy_commit() { # DIRECTORY
  rm -rf --one-file-system -- "$1"
  mkdir "$1"
  # The checkout may belong to another user than root.
  git -c safe.directory='*' -C "$(dirname "${BASH_SOURCE[0]}")/../.." archive HEAD | tar -x -C "$1"
}

# Mounts what a privileged container has. REQUIRES: a mount namespace of its own, because nothing is unmounted.
mount_kernel() { # ROOT
  mount -t proc proc "$1/proc"
  mount --rbind /sys "$1/sys"
  mount --rbind /dev "$1/dev"
}

# Runs a command in a root, in a directory of it, with the environment of a fresh login.
run_in() { # ROOT DIRECTORY COMMAND...
  local root=$1 directory=$2
  shift 2
  # shellcheck disable=SC2016 # the inner shell replaces it
  chroot "$root" /usr/bin/env -i HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    /bin/bash -c 'cd "$1" && shift && "$@"' run_in "$directory" "$@"
}
