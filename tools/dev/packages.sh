# shellcheck shell=bash
# The Debian packages that quickstart and check need, and functions that install the missing ones without questions.
# Sourced, never run.
# shellcheck disable=SC2034 # used where it is sourced

# Packages to build the programs and to mount.
build_packages=(
  g++ meson ninja-build pkg-config scdoc
  fuse3 libfuse3-dev libspdlog-dev libfmt-dev
  libzstd-dev liblz4-dev libdeflate-dev libsnappy-dev libzfp-dev libhwy-dev libssl-dev zlib1g-dev libxxhash-dev libseccomp-dev
  libcurl4-openssl-dev libexpat1-dev
  libboost-dev libboost-filesystem-dev libexpected-dev libcli11-dev nlohmann-json3-dev libutfcpp-dev
)

# Further packages to build and run the tests. clang provides the sanitizers and fuzzers.
test_packages=(
  libgtest-dev librapidcheck-dev
  clang clang-format libclang-rt-dev llvm
  acl attr bash-completion man-db python3 python3-numpy rsync shellcheck
  bindfs sshfs openssh-sftp-server exfat-fuse exfatprogs e2fsprogs
  nginx-light openssl
)

# Further packages to build the Debian package.
package_packages=(build-essential debhelper dpkg-dev lintian pkgconf)

# Prints the arguments that are not installed, one on each line.
missing_packages() {
  local package
  for package in "$@"; do
    [[ $(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || echo "$package"
  done
}

# Runs a command as root.
as_root() {
  if ((EUID == 0)); then
    "$@"
  elif ! command -v sudo >/dev/null; then
    echo "$0: needs root to install packages, but sudo is missing: run it as root once" >&2
    return 3
  else
    sudo "$@"
  fi
}

# Makes /etc/mtab, without which fusermount3 of Debian 13 fails. The installer and containers make it, debootstrap does not.
ensure_mount_table() {
  [[ -e /etc/mtab ]] || as_root ln -sf ../proc/self/mounts /etc/mtab
}

# Installs those of its arguments that are missing.
ensure_packages() {
  local missing
  mapfile -t missing < <(missing_packages "$@")
  if ((${#missing[@]} == 0)); then
    echo "== packages: all installed"
    return 0
  fi
  if ! command -v apt-get >/dev/null; then
    echo "$0: these packages are missing, and apt-get is not available: ${missing[*]}" >&2
    return 3
  fi
  echo "== packages: installing ${missing[*]}"
  local options=(-qq -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3)
  as_root apt-get "${options[@]}" update &&
    as_root env DEBIAN_FRONTEND=noninteractive apt-get "${options[@]}" install -y --no-install-recommends "${missing[@]}"
}
