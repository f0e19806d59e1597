// Programs that keep a mount at work with slow requests, one after the other, until they are killed; and small writes.
//
// Each prints a line before its first request and after each round. The files that they need are made by the benchmark.
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <system_error>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "tests/bench/client_commands.h"
#include "tests/bench/client_measure.h"

namespace cframefs::bench {
namespace {

constexpr std::size_t kMebibyte = std::size_t{1} << 20;
constexpr std::size_t kSmallWrite = 100;

/// Open for writing. Closing is a part of what is measured, and may fail where the file is locked.
class Output {
 public:
  Output(const std::string& path, int flags) : fd_(::open(path.c_str(), O_CLOEXEC | flags, 0644)) {
    if (fd_ < 0) fail("open " + path);
  }
  ~Output() { ::close(fd_); }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  int fd() const { return fd_; }
  void write(const std::string& text, std::uint64_t at) const {
    if (::pwrite(fd_, text.data(), text.size(), static_cast<off_t>(at)) < 0) fail("write");
  }

 private:
  int fd_;
};

/// Hexadecimal digits by chance: they are half as long when they are packed, by whatever codec.
std::string digits(std::size_t size) {
  std::mt19937_64 generator(1);
  std::string text(size, '0');
  for (char& digit : text)
    digit = "0123456789abcdef"[generator() % 16];
  return text;
}

std::string numbered(const Options& options, const std::string& stem) {
  return stem + "-" + std::to_string(options.number);
}

std::string shown(const Options& options, const std::string& stem) {
  return options.paths.front() + "/" + numbered(options, stem);
}

/// Another file with the same bytes takes its place: what the daemon knows of it is void.
void replace(const Options& options, const std::string& name) {
  const std::string path = options.source + "/" + name;
  const std::string copy = options.source + "/.copy-" + name;
  std::filesystem::copy_file(path, copy, std::filesystem::copy_options::overwrite_existing);
  std::filesystem::rename(copy, path);
}

void read_one_page(const std::string& path, std::uint64_t place) {
  const File file(path);
  ::posix_fadvise(file.fd(), 0, 0, POSIX_FADV_DONTNEED);
  ::posix_fadvise(file.fd(), 0, 0, POSIX_FADV_RANDOM);
  std::array<std::byte, kPage> page{};
  file.read_at(page, place);
}

void read_block(const Options& options) {
  static std::mt19937_64 generator(options.number);
  const std::string path = shown(options, "block");
  read_one_page(path, generator() % (File(path).size() / kPage) * kPage);
}

void read_in_order(const Options& options) {
  const File file(shown(options, "large"));
  ::posix_fadvise(file.fd(), 0, 0, POSIX_FADV_DONTNEED);
  std::vector<std::byte> buffer(kMebibyte);
  for (std::uint64_t at = 0; file.read_at(buffer, at) == buffer.size();)
    at += buffer.size();
}

void sync_file(const Options& options) {
  const Output file(shown(options, "synced"), O_CREAT | O_WRONLY);
  file.write(std::string(kSmallWrite, 'x'), 0);
  if (::fsync(file.fd()) != 0) fail("fsync");
}

void close_file(const Options& options) {
  static const std::string text = digits(kMebibyte);
  const Output file(shown(options, "closed"), O_CREAT | O_WRONLY | O_TRUNC);
  for (std::uint64_t mebibyte = 0; mebibyte < options.mebibytes; ++mebibyte)
    file.write(text, mebibyte * kMebibyte);
}

void read_member(const Options& options) {
  const std::string path = shown(options, "store") + ".b2z/member";
  read_one_page(path, File(path).size() / 4 * 3);
  replace(options, numbered(options, "store") + ".b2z");
}

void copy_range(const Options& options) {
  const File from(options.paths.front() + "/copied");
  const Output to(shown(options, "copy"), O_CREAT | O_RDWR | O_TRUNC);
  ssize_t got = 1;
  for (std::uint64_t left = from.size(); left > 0 && got > 0; left -= static_cast<std::uint64_t>(got)) {
    got = ::copy_file_range(from.fd(), nullptr, to.fd(), nullptr, left, 0);
    if (got < 0) fail("copy_file_range");
  }
}

void list_directory(const Options& options) {
  const std::string path = shown(options, "many");
  DIR* const dir = ::opendir(path.c_str());
  if (dir == nullptr) fail("opendir " + path);
  while (::readdir(dir) != nullptr) {
  }
  ::closedir(dir);
}

void open_chunks(const Options& options) {
  read_one_page(shown(options, "chunks"), 0);
  replace(options, numbered(options, "chunks") + ".b2frame");
}

/// Sends no request to the mount: measures how the kernel alone schedules this number of programs.
void compute(const Options&) {
  constexpr double kSeconds = 0.1;
  std::mt19937_64 generator(1);
  const double end = monotonic_seconds() + kSeconds;
  while (monotonic_seconds() < end)
    generator.discard(kPage);
}

void write_locked(const Options& options) {
  const Output file(shown(options, "locked"), O_WRONLY);
  file.write("0123456789", 0);
}

using Round = void (*)(const Options&);

const std::map<std::string, Round>& rounds() {
  static const std::map<std::string, Round> all = {{"block", read_block},       {"sequential", read_in_order},
                                                   {"fsync", sync_file},        {"close", close_file},
                                                   {"member", read_member},     {"copy", copy_range},
                                                   {"readdir", list_directory}, {"chunks", open_chunks},
                                                   {"lock", write_locked},      {"busy", compute}};
  return all;
}

/// Flushed, for the benchmark waits for it.
void say(const char* what) {
  std::puts(what);
  std::fflush(stdout);
}

}  // namespace

std::vector<std::string> kinds_of_load() {
  std::vector<std::string> kinds;
  for (const auto& [kind, round] : rounds())
    kinds.push_back(kind);
  return kinds;
}

nlohmann::json load(const Options& options) {
  const Round round = rounds().at(options.kind);
  say("begun");
  while (true) {
    try {
      round(options);
    } catch (const std::system_error& error) {
      // Of a file that has just been replaced.
      if (error.code().value() != ESTALE) throw;
    }
    say("round");
  }
}

nlohmann::json small_writes(const Options& options) {
  const Output file(options.paths.front(), O_CREAT | O_WRONLY);
  const std::string text(kSmallWrite, 'x');
  const Stopwatch watch(options.server);
  const double end = monotonic_seconds() + options.seconds;
  std::uint64_t count = 0;
  while (monotonic_seconds() < end)
    file.write(text, count++ * kSmallWrite);
  nlohmann::json result = watch.report(0);
  result["ops"] = static_cast<double>(count) / result["seconds"].get<double>();
  return result;
}

}  // namespace cframefs::bench
