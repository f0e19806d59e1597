# shellcheck shell=bash
# The Debian packages that quickstart and check need, and how they are installed: only what is missing, asking nothing.
# Sourced, never run.
# shellcheck disable=SC2034 # used where it is sourced

# To build the programs and mount with them.
build_packages=(
  g++ meson ninja-build pkg-config scdoc
  fuse3 libfuse3-dev libspdlog-dev libfmt-dev
  libzstd-dev liblz4-dev libdeflate-dev libsnappy-dev libzfp-dev libhwy-dev libssl-dev zlib1g-dev
  libboost-dev libboost-filesystem-dev libexpected-dev libcli11-dev nlohmann-json3-dev
)

# To build and run the tests as well. The second compiler brings the sanitizers, the fuzzers and clang-format.
test_packages=(
  libgtest-dev librapidcheck-dev
  clang clang-format libclang-rt-14-dev llvm
  acl attr bash-completion man-db python3 python3-numpy rsync shellcheck
  bindfs sshfs openssh-sftp-server exfat-fuse exfatprogs
)

# Prints those of its arguments that are not installed, one a line.
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
    echo "$0: needs root to install packages, and there is no sudo: run it as root once" >&2
    return 3
  else
    sudo "$@"
  fi
}

# Installs what is missing of its arguments.
ensure_packages() {
  local missing
  mapfile -t missing < <(missing_packages "$@")
  if ((${#missing[@]} == 0)); then
    echo "== packages: all there"
    return 0
  fi
  if ! command -v apt-get >/dev/null; then
    echo "$0: missing and not to be had without apt-get: ${missing[*]}" >&2
    return 3
  fi
  echo "== packages: installing ${missing[*]}"
  local options=(-qq -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3)
  as_root apt-get "${options[@]}" update &&
    as_root env DEBIAN_FRONTEND=noninteractive apt-get "${options[@]}" install -y --no-install-recommends "${missing[@]}"
}
