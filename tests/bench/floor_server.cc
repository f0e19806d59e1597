// The FUSE floor: a server whose content already lies in memory, so that what it costs is what any server pays.
//
//   bench_floor --file=PATH [--threads=2] [--max-read=1M] [--many=0] [--parts=0] [--sink] MOUNTPOINT
//
// Serves /data (the bytes of PATH), /many (a directory of --many files of 4 KiB) and /parts (a directory of --parts
// files of as many equal pieces of PATH), read-only, in the foreground, with the settings of the mount: low-level API,
// fixed service threads, no splice, direct_io only for handles opened write-only, the page cache kept across opens,
// attributes valid for a day, and with a descriptor for each thread, which the mount does without. With --sink there is
// also /sink, which can be written to: what it is given is thrown away. A mount of compressed frames can at best be as
// fast as this.
//
// Thread safety: the content is mapped once before the loop starts and never changes. Sizes are bytes.
// Errors: a failure to start prints one line and exits with 3; wrong usage exits with 2.
#define FUSE_USE_VERSION 312

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <CLI/CLI.hpp>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

constexpr fuse_ino_t kRootInode = FUSE_ROOT_ID;
constexpr fuse_ino_t kDataInode = 2;
constexpr fuse_ino_t kManyInode = 3;
constexpr fuse_ino_t kPartsInode = 4;
constexpr fuse_ino_t kSinkInode = 5;
constexpr fuse_ino_t kFirstPartInode = 16;
constexpr fuse_ino_t kFirstSmallInode = 4096;
constexpr std::uint32_t kMaxParts = kFirstSmallInode - kFirstPartInode;
constexpr std::uint64_t kSmallFileSize = 4096;
constexpr double kForever = 86400;  // seconds that names and attributes stay valid
constexpr time_t kSomeTime = 1700000000;
const std::array<char, kSmallFileSize> kSmallFile{};

struct Options {
  std::string file;
  std::string mount_point;
  unsigned threads = 2;
  std::uint64_t max_read = std::uint64_t{1} << 20;
  std::uint32_t many = 0;
  std::uint32_t parts = 0;
  bool sink = false;
};

/// A file mapped whole and faulted in. Non-copyable; unmapped at the end.
class Content {
 public:
  explicit Content(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    struct stat attributes {};
    if (::fstat(fd, &attributes) == 0 && attributes.st_size > 0) {
      const auto size = static_cast<std::size_t>(attributes.st_size);
      void* const at = ::mmap(nullptr, size, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
      if (at != MAP_FAILED) bytes_ = {static_cast<char*>(at), size};
    }
    ::close(fd);
  }
  ~Content() {
    if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
  }
  Content(const Content&) = delete;
  Content& operator=(const Content&) = delete;

  bool valid() const { return !bytes_.empty(); }
  std::span<const char> bytes() const { return bytes_; }

 private:
  std::span<char> bytes_;
};

/// What the callbacks need; lives in main() for as long as the session.
struct Server {
  const Options& options;
  const Content& content;
};

const Server& server_of(fuse_req_t request) {
  return *static_cast<const Server*>(fuse_req_userdata(request));
}

bool is_directory(fuse_ino_t inode) {
  return inode == kRootInode || inode == kManyInode || inode == kPartsInode;
}

std::span<const char> bytes_of(const Server& server, fuse_ino_t inode) {
  const std::span<const char> all = server.content.bytes();
  if (inode == kDataInode) return all;
  if (inode == kSinkInode) return {};
  if (inode >= kFirstSmallInode) return kSmallFile;
  const std::size_t part = all.size() / std::max(server.options.parts, 1U);
  return all.subspan((inode - kFirstPartInode) * part, part);
}

struct stat attributes_of(const Server& server, fuse_ino_t inode) {
  struct stat result {};
  result.st_ino = inode;
  result.st_atime = result.st_mtime = result.st_ctime = kSomeTime;
  result.st_blksize = static_cast<blksize_t>(server.options.max_read);
  if (is_directory(inode)) {
    result.st_mode = S_IFDIR | 0555;
    result.st_nlink = 2;
    return result;
  }
  const std::uint64_t size = bytes_of(server, inode).size();
  result.st_mode = S_IFREG | (inode == kSinkInode ? 0666 : 0444);
  result.st_nlink = 1;
  result.st_size = static_cast<off_t>(size);
  result.st_blocks = static_cast<blkcnt_t>((size + 511) / 512);
  return result;
}

fuse_entry_param entry_of(const Server& server, fuse_ino_t inode) {
  fuse_entry_param entry{};
  entry.ino = inode;
  entry.attr = attributes_of(server, inode);
  entry.attr_timeout = entry.entry_timeout = kForever;
  return entry;
}

/// Inode of a name, 0 if there is none.
fuse_ino_t find(const Server& server, fuse_ino_t parent, std::string_view name) {
  if (parent == kRootInode && name == "data") return kDataInode;
  if (parent == kRootInode && name == "many") return kManyInode;
  if (parent == kRootInode && name == "parts") return kPartsInode;
  if (parent == kRootInode && name == "sink") return server.options.sink ? kSinkInode : 0;
  if (parent != kManyInode && parent != kPartsInode) return 0;
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  const std::uint32_t count = parent == kManyInode ? server.options.many : server.options.parts;
  const bool known = error == std::errc{} && end == name.data() + name.size() && number < count;
  if (!known) return 0;
  return (parent == kManyInode ? kFirstSmallInode : kFirstPartInode) + number;
}

void do_init(void* userdata, fuse_conn_info* connection) {
  // The library wants the size of the mount options repeated here.
  connection->max_read = static_cast<unsigned>(static_cast<const Server*>(userdata)->options.max_read);
  connection->want &= ~static_cast<unsigned>(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE);
}

void do_lookup(fuse_req_t request, fuse_ino_t parent, const char* name) {
  const Server& server = server_of(request);
  const fuse_ino_t inode = find(server, parent, name);
  if (inode == 0) {
    fuse_reply_err(request, ENOENT);
    return;
  }
  const fuse_entry_param entry = entry_of(server, inode);
  fuse_reply_entry(request, &entry);
}

void do_getattr(fuse_req_t request, fuse_ino_t inode, fuse_file_info* /*file*/) {
  const struct stat attributes = attributes_of(server_of(request), inode);
  fuse_reply_attr(request, &attributes, kForever);
}

void do_open(fuse_req_t request, fuse_ino_t inode, fuse_file_info* file) {
  if ((file->flags & O_ACCMODE) != O_RDONLY && inode != kSinkInode) {
    fuse_reply_err(request, EROFS);
    return;
  }
  file->keep_cache = 1;
  file->direct_io = (file->flags & O_ACCMODE) == O_WRONLY ? 1 : 0;
  file->noflush = 1;
  fuse_reply_open(request, file);
}

void do_opendir(fuse_req_t request, fuse_ino_t /*inode*/, fuse_file_info* file) {
  fuse_reply_open(request, file);
}

void do_read(fuse_req_t request, fuse_ino_t inode, std::size_t size, off_t offset, fuse_file_info* /*file*/) {
  const std::span<const char> bytes = bytes_of(server_of(request), inode);
  const std::size_t begin = std::min(static_cast<std::size_t>(offset), bytes.size());
  const std::span<const char> answer = bytes.subspan(begin, std::min(size, bytes.size() - begin));
  fuse_reply_buf(request, answer.data(), answer.size());
}

void do_write(fuse_req_t request, fuse_ino_t /*inode*/, const char* /*bytes*/, std::size_t size, off_t /*offset*/,
              fuse_file_info* /*file*/) {
  fuse_reply_write(request, size);
}

/// Of the sink, which is cut to nothing.
void do_setattr(fuse_req_t request, fuse_ino_t inode, struct stat* /*wanted*/, int /*what*/, fuse_file_info* file) {
  do_getattr(request, inode, file);
}

/// Entry number `index` of a directory; inode 0 past the last.
std::pair<std::string, fuse_ino_t> child(const Server& server, fuse_ino_t directory, std::uint64_t index) {
  if (directory == kManyInode || directory == kPartsInode) {
    const bool many = directory == kManyInode;
    if (index >= (many ? server.options.many : server.options.parts)) return {};
    return {std::to_string(index), (many ? kFirstSmallInode : kFirstPartInode) + index};
  }
  if (index == 0) return {"data", kDataInode};
  if (index == 1) return {"many", kManyInode};
  if (index == 2) return {"parts", kPartsInode};
  if (index == 3 && server.options.sink) return {"sink", kSinkInode};
  return {};
}

void reply_directory(fuse_req_t request, fuse_ino_t inode, std::size_t size, off_t offset, bool plus) {
  const Server& server = server_of(request);
  std::vector<char> buffer(size);
  std::size_t used = 0;
  for (auto index = static_cast<std::uint64_t>(offset);; ++index) {
    const auto [name, child_inode] = child(server, inode, index);
    if (child_inode == 0) break;
    const fuse_entry_param entry = entry_of(server, child_inode);
    const auto next = static_cast<off_t>(index + 1);
    char* const at = buffer.data() + used;
    const std::size_t space = size - used;
    const std::size_t needed = plus ? fuse_add_direntry_plus(request, at, space, name.c_str(), &entry, next)
                                    : fuse_add_direntry(request, at, space, name.c_str(), &entry.attr, next);
    if (needed > space) break;
    used += needed;
  }
  fuse_reply_buf(request, buffer.data(), used);
}

void do_readdir(fuse_req_t request, fuse_ino_t inode, std::size_t size, off_t offset, fuse_file_info* /*file*/) {
  reply_directory(request, inode, size, offset, false);
}

void do_readdirplus(fuse_req_t request, fuse_ino_t inode, std::size_t size, off_t offset, fuse_file_info* /*file*/) {
  reply_directory(request, inode, size, offset, true);
}

fuse_lowlevel_ops operations() {
  fuse_lowlevel_ops result{};
  result.init = do_init;
  result.lookup = do_lookup;
  result.getattr = do_getattr;
  result.open = do_open;
  result.read = do_read;
  result.write = do_write;
  result.setattr = do_setattr;
  result.opendir = do_opendir;
  result.readdir = do_readdir;
  result.readdirplus = do_readdirplus;
  return result;
}

struct SessionDeleter {
  void operator()(fuse_session* session) const { fuse_session_destroy(session); }
};
struct LoopConfigDeleter {
  void operator()(fuse_loop_config* config) const { fuse_loop_cfg_destroy(config); }
};

int fail(const std::string& what) {
  std::fprintf(stderr, "bench_floor: %s\n", what.c_str());
  return 3;
}

int serve(Server& server) {
  const Options& options = server.options;
  std::string program = "bench_floor";
  std::string mount_options = options.sink ? "-orw" : "-oro";
  mount_options += ",fsname=bench_floor,max_read=" + std::to_string(options.max_read);
  std::array<char*, 2> arguments{program.data(), mount_options.data()};
  fuse_args args = FUSE_ARGS_INIT(static_cast<int>(arguments.size()), arguments.data());
  const fuse_lowlevel_ops ops = operations();
  const std::unique_ptr<fuse_session, SessionDeleter> session(fuse_session_new(&args, &ops, sizeof ops, &server));
  fuse_opt_free_args(&args);
  if (!session) return fail("cannot create the FUSE session");
  if (fuse_set_signal_handlers(session.get()) != 0) return fail("cannot set the signal handlers");
  if (fuse_session_mount(session.get(), options.mount_point.c_str()) != 0)
    return fail("cannot mount on " + options.mount_point);

  const std::unique_ptr<fuse_loop_config, LoopConfigDeleter> loop(fuse_loop_cfg_create());
  fuse_loop_cfg_set_clone_fd(loop.get(), 1);
  fuse_loop_cfg_set_max_threads(loop.get(), options.threads);
  fuse_loop_cfg_set_idle_threads(loop.get(), options.threads);
  const int outcome = fuse_session_loop_mt(session.get(), loop.get());
  fuse_session_unmount(session.get());
  fuse_remove_signal_handlers(session.get());
  // A positive outcome is the signal that ended the loop.
  return outcome < 0 ? fail("the FUSE loop failed: " + std::generic_category().message(-outcome)) : 0;
}

int floor_main(int argc, char** argv) {
  Options options;
  CLI::App app{"In-memory FUSE server: the floor that the mount is measured against."};
  app.add_option("--file", options.file, "File whose content is served as /data")->required();
  app.add_option("--threads", options.threads, "Service threads")->check(CLI::Range(1, 64));
  app.add_option("--max-read", options.max_read, "Largest read request in bytes")->transform(CLI::AsSizeValue(false));
  app.add_option("--many", options.many, "Files of 4 KiB in /many");
  app.add_option("--parts", options.parts, "Pieces of the file in /parts")->check(CLI::Range(0U, kMaxParts));
  app.add_flag("--sink", options.sink, "A file /sink that takes writes and throws them away");
  app.add_option("mountpoint", options.mount_point)->required();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const Content content(options.file);
  if (!content.valid()) return fail("cannot map " + options.file);
  Server server{options, content};
  return serve(server);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return floor_main(argc, argv);
  } catch (const std::exception& error) {
    return fail(error.what());
  }
}
