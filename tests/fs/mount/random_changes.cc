// Changes files of a mount at random, each change also made to a plain shadow file, and compares the two all the while.
//
//   random_changes MOUNTED_DIRECTORY SHADOW_DIRECTORY SEED OPERATIONS [CHUNK_SIZE]
//
// Two threads change files of their own; two more read what the others write: one under a lock, with every byte
// compared, one without, which must never see an error. Goes on with the files that it finds, so that a remount between
// two runs is part of the check. Prints the first difference with the operations that led to it; exit status 1.
//
// With CHUNK_SIZE every byte but zeros tells its chunk, so the reader without a lock sees bytes of other chunks, too;
// it reads past the page cache as well. The files stay what they are: none is removed, and none is copied into another.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <random>
#include <shared_mutex>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

constexpr std::uint64_t kMaxBytes = 600'000;
constexpr int kThreads = 2;
constexpr int kFilesOfEach = 3;
constexpr std::size_t kRemembered = 40;
constexpr std::uint64_t kTags = 127;

// 0: bytes are what they like.
std::uint64_t chunk_size = 0;

std::atomic<bool> failed{false};
std::atomic<bool> finished{false};

using Bytes = std::vector<unsigned char>;

/// What a byte of the file at `at` says of its chunk.
std::uint64_t tag_of(std::uint64_t at) {
  return at / chunk_size % kTags;
}

/// A file in both worlds, and what was done to it last.
class Pair {
 public:
  Pair(std::string mounted, std::string shadow) : names_{std::move(mounted), std::move(shadow)} { open(O_CREAT); }
  ~Pair() { close(); }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  std::shared_mutex& mutex() { return mutex_; }
  const std::string& mounted() const { return names_[0]; }

  void note(const std::string& operation) {
    operations_.push_back(operation);
    if (operations_.size() > kRemembered) operations_.pop_front();
  }
  void fail(const std::string& what) {
    if (failed.exchange(true)) return;
    const std::string reason = std::generic_category().message(errno);
    std::fprintf(stderr, "%s: %s (%s); after:\n", names_[0].c_str(), what.c_str(), reason.c_str());
    for (const std::string& operation : operations_)
      std::fprintf(stderr, "  %s\n", operation.c_str());
  }

  void open(int flags) {
    for (int i = 0; i < 2; ++i) {
      fds_[i] = ::open(names_[i].c_str(), O_RDWR | O_CLOEXEC | flags, 0644);
      if (fds_[i] < 0) fail("open");
    }
  }
  void close() {
    for (int& fd : fds_) {
      if (::close(fd) != 0) fail("close");
      fd = -1;
    }
  }

  /// The same call on both; both must answer the same.
  template <class Call>
  void both(const char* name, Call call) {
    const auto one = call(fds_[0], names_[0]);
    const int why = one < 0 ? errno : 0;
    const auto other = call(fds_[1], names_[1]);
    const int other_why = other < 0 ? errno : 0;
    if (one != other || why != other_why) {
      fail(std::string(name) + " answers " + std::to_string(one) + "/" + std::to_string(why) + ", a plain file " +
           std::to_string(other) + "/" + std::to_string(other_why));
    }
  }

  std::uint64_t size() {
    struct stat status[2]{};
    for (int i = 0; i < 2; ++i) {
      if (::fstat(fds_[i], &status[i]) != 0) fail("fstat");
    }
    if (status[0].st_size != status[1].st_size) {
      fail("size " + std::to_string(status[0].st_size) + ", of a plain file " + std::to_string(status[1].st_size));
    }
    return static_cast<std::uint64_t>(status[1].st_size);
  }

  void compare(std::uint64_t at, std::size_t length) {
    Bytes bytes[2] = {Bytes(length), Bytes(length)};
    ssize_t got[2];
    for (int i = 0; i < 2; ++i)
      got[i] = ::pread(fds_[i], bytes[i].data(), length, static_cast<off_t>(at));
    if (got[0] < 0) return fail("read at " + std::to_string(at));
    if (got[0] != got[1]) {
      return fail("read of " + std::to_string(length) + " at " + std::to_string(at) + " gives " +
                  std::to_string(got[0]) + " bytes, of a plain file " + std::to_string(got[1]));
    }
    const auto differs = std::mismatch(bytes[0].begin(), bytes[0].begin() + got[0], bytes[1].begin());
    if (differs.first != bytes[0].begin() + got[0]) {
      fail("byte " + std::to_string(at + static_cast<std::uint64_t>(differs.first - bytes[0].begin())) + " is " +
           std::to_string(*differs.first) + ", of a plain file " + std::to_string(*differs.second));
    }
  }

  int fd(int which) const { return fds_[which]; }
  const std::string& name(int which) const { return names_[which]; }

 private:
  std::string names_[2];
  int fds_[2] = {-1, -1};
  std::shared_mutex mutex_;
  std::deque<std::string> operations_;
};

class Changer {
 public:
  Changer(std::vector<std::unique_ptr<Pair>>& pairs, unsigned seed) : pairs_(pairs), random_(seed) {}

  void run(int operations) {
    for (int i = 0; i < operations && !failed; ++i) {
      Pair& pair = *pairs_[below(pairs_.size())];
      const std::unique_lock lock(pair.mutex());
      change(pair);
    }
    for (auto& pair : pairs_) {
      const std::unique_lock lock(pair->mutex());
      pair->compare(0, pair->size() + 1);
    }
  }

 private:
  std::uint64_t below(std::uint64_t bound) { return bound == 0 ? 0 : random_() % bound; }

  /// Mostly small, sometimes whole chunks.
  std::size_t length() {
    const std::uint64_t kind = below(10);
    if (kind < 5) return 1 + below(300);
    if (kind < 8) return 1 + below(20'000);
    return 1 + below(150'000);
  }
  std::uint64_t place(std::uint64_t size) {
    const std::uint64_t kind = below(12);
    if (kind == 0) return size;
    if (kind == 1) return below(kMaxBytes);
    if (kind < 5) return below(size + 1) / 4096 * 4096;
    if (kind < 7) return below(size + 1) / 65536 * 65536;
    return below(size + 1);
  }
  /// Runs, noise and zeros, as real data has them; or the number of the chunk that they come into.
  Bytes data(std::uint64_t at, std::size_t length) {
    Bytes bytes(length);
    if (chunk_size > 0) {
      for (std::size_t i = 0; i < length; ++i)
        bytes[i] = static_cast<unsigned char>(1 + tag_of(at + i) * 2 + random_() % 2);
      return bytes;
    }
    const std::uint64_t kind = below(4);
    if (kind == 0) {
      for (auto& byte : bytes)
        byte = static_cast<unsigned char>(random_());
    } else if (kind == 1) {
      std::fill(bytes.begin(), bytes.end(), static_cast<unsigned char>(below(3)));
    } else {
      for (std::size_t i = 0; i < length; ++i)
        bytes[i] = static_cast<unsigned char>(i / 7 + random_() % 3);
    }
    return bytes;
  }

  void change(Pair& pair) {
    const std::uint64_t size = pair.size();
    const std::uint64_t at = place(size);
    const std::size_t count = std::min<std::uint64_t>(length(), kMaxBytes > at ? kMaxBytes - at : 1);
    const std::string range = std::to_string(at) + "+" + std::to_string(count);
    switch (below(21)) {
      case 0:
      case 1:
      case 2:
      case 3:
        pair.note("write " + range);
        return write(pair, at, count, 0);
      case 4:
        pair.note("write through a handle of its own " + range);
        return write(pair, at, count, O_WRONLY);
      case 5:
      case 6:
        if (size + count > kMaxBytes) return truncate(pair, below(size));
        pair.note("append " + std::to_string(count));
        return write(pair, size, count, O_WRONLY | O_APPEND);
      case 7:
        return truncate(pair, below(8) == 0 ? below(kMaxBytes) : below(size + 1));
      case 8:
      case 9:
        return allocate(pair, at, count);
      case 10:
        if (chunk_size > 0) return commit_often(pair, size);
        return copy(pair, size);
      case 11:
      case 12:
        return map(pair, size);
      case 13:
        return reopen(pair);
      case 14:
        return synchronize(pair);
      case 15:
        return rename(pair);
      case 16:
        return holes(pair, size);
      case 17:
        return pair.compare(0, size + 10);
      default:
        return pair.compare(at, count);
    }
  }

  /// `own_flags`: those of a handle that is opened for it; 0: through the one that is open.
  void write(Pair& pair, std::uint64_t at, std::size_t count, int own_flags) {
    const Bytes bytes = data(at, count);
    pair.both("write", [&](int fd, const std::string& name) -> ssize_t {
      if (own_flags == 0) return ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(at));
      const int own = ::open(name.c_str(), own_flags | O_CLOEXEC);
      if (own < 0) return -1;
      const ssize_t put = ::pwrite(own, bytes.data(), bytes.size(), static_cast<off_t>(at));
      return ::close(own) == 0 ? put : -1;
    });
  }

  void truncate(Pair& pair, std::uint64_t size) {
    pair.note("truncate " + std::to_string(size));
    const bool by_name = below(2) == 0;
    pair.both("truncate", [&](int fd, const std::string& name) {
      return by_name ? ::truncate(name.c_str(), static_cast<off_t>(size)) : ::ftruncate(fd, static_cast<off_t>(size));
    });
  }

  void allocate(Pair& pair, std::uint64_t at, std::size_t count) {
    constexpr int kModes[] = {0, FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, FALLOC_FL_ZERO_RANGE,
                              FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE};
    const int mode = kModes[below(5)];
    pair.note("fallocate " + std::to_string(mode) + " " + std::to_string(at) + "+" + std::to_string(count));
    pair.both("fallocate", [&](int fd, const std::string&) {
      return ::fallocate(fd, mode, static_cast<off_t>(at), static_cast<off_t>(count));
    });
  }

  /// Within a file or from another one; often whole chunks, and often up to the end.
  void copy(Pair& pair, std::uint64_t size) {
    Pair& other = *pairs_[below(pairs_.size())];
    const std::uint64_t other_size = &other == &pair ? size : other.size();
    const std::uint64_t from = below(3) == 0 ? below(other_size + 1) : below(other_size + 1) / 65536 * 65536;
    const std::uint64_t to = below(3) == 0 ? place(size) : place(size) / 65536 * 65536;
    const std::uint64_t wanted = below(2) == 0 ? below(200'000) : below(10) * 65536;
    std::uint64_t count = below(4) == 0 ? other_size - from : wanted;
    count = std::min(count, kMaxBytes - std::min(kMaxBytes, to));
    if (&other == &pair && from < to + count && to < from + count) count = from < to ? to - from : from - to;
    pair.note("copy " + other.mounted() + " " + std::to_string(from) + "+" + std::to_string(count) + " to " +
              std::to_string(to));
    pair.both("copy_file_range", [&](int fd, const std::string& name) -> std::int64_t {
      const int source = other.fd(name == pair.name(0) ? 0 : 1);
      auto in = static_cast<off64_t>(from);
      auto out = static_cast<off64_t>(to);
      std::int64_t done = 0;
      while (static_cast<std::uint64_t>(done) < count) {
        const ssize_t got = ::copy_file_range(source, &in, fd, &out, count - static_cast<std::uint64_t>(done), 0);
        if (got < 0) return -1;
        if (got == 0) break;
        done += got;
      }
      return done;
    });
  }

  void map(Pair& pair, std::uint64_t size) {
    if (size == 0) return;
    const std::uint64_t at = below(size);
    const std::size_t count = std::min<std::uint64_t>(1 + below(9000), size - at);
    const Bytes bytes = data(at, count);
    const bool sync = below(2) == 0;
    pair.note("map " + std::to_string(at) + "+" + std::to_string(count) + (sync ? " and sync" : ""));
    pair.both("mmap", [&](int fd, const std::string&) {
      void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
      if (memory == MAP_FAILED) return -1;
      std::memcpy(static_cast<unsigned char*>(memory) + at, bytes.data(), count);
      const int synced = sync ? ::msync(memory, size, MS_SYNC) : 0;
      return ::munmap(memory, size) == 0 ? synced : -1;
    });
  }

  static void synchronize(Pair& pair) {
    pair.note("fsync");
    pair.both("fsync", [](int fd, const std::string&) { return ::fsync(fd); });
  }

  /// One commit after the other, each of a chunk.
  void commit_often(Pair& pair, std::uint64_t size) {
    pair.note("commit chunks");
    for (int i = 0; i < 20; ++i) {
      write(pair, below(size / chunk_size + 1) * chunk_size, 1 + below(chunk_size), 0);
      if (::fsync(pair.fd(0)) != 0) pair.fail("fsync");
    }
  }

  void reopen(Pair& pair) {
    std::uint64_t kind = below(6);
    if (chunk_size > 0 && kind == 1) kind = 2;
    pair.note(kind == 0 ? "reopen, truncated" : kind == 1 ? "remove and create" : "reopen");
    pair.close();
    if (kind == 1) {
      pair.both("unlink", [](int, const std::string& name) { return ::unlink(name.c_str()); });
    }
    pair.open(kind == 0 ? O_TRUNC : kind == 1 ? O_CREAT | O_EXCL : 0);
  }

  static void rename(Pair& pair) {
    pair.note("rename there and back");
    pair.both("rename", [](int, const std::string& name) {
      const std::string other = name + "-away";
      return ::rename(name.c_str(), other.c_str()) == 0 ? ::rename(other.c_str(), name.c_str()) : -1;
    });
  }

  /// What is said to be a hole reads as zeros.
  static void holes(Pair& pair, std::uint64_t size) {
    pair.note("holes");
    for (off_t at = 0; static_cast<std::uint64_t>(at) < size;) {
      off_t data_at = ::lseek(pair.fd(0), at, SEEK_DATA);
      if (data_at < 0 && errno != ENXIO) return pair.fail("SEEK_DATA");
      if (data_at < 0) data_at = static_cast<off_t>(size);
      Bytes hole(static_cast<std::size_t>(data_at - at));
      if (::pread(pair.fd(1), hole.data(), hole.size(), at) < 0) return pair.fail("read");
      if (std::any_of(hole.begin(), hole.end(), [](unsigned char byte) { return byte != 0; })) {
        return pair.fail("a hole at " + std::to_string(at) + " where data is");
      }
      if (static_cast<std::uint64_t>(data_at) >= size) return;
      at = ::lseek(pair.fd(0), data_at, SEEK_HOLE);
      if (at < 0) return pair.fail("SEEK_HOLE");
    }
  }

  std::vector<std::unique_ptr<Pair>>& pairs_;
  std::mt19937_64 random_;
};

void read_under_lock(std::vector<std::unique_ptr<Pair>>& pairs, unsigned seed) {
  std::mt19937_64 random(seed);
  while (!finished && !failed) {
    Pair& pair = *pairs[random() % pairs.size()];
    const std::shared_lock lock(pair.mutex());
    pair.compare(random() % kMaxBytes, 1 + random() % 70'000);
  }
}

/// Whatever is written meanwhile, a byte is a zero or says the chunk that it is in.
void check_tags(Pair& pair, std::uint64_t at, const Bytes& bytes, std::size_t length) {
  for (std::size_t i = 0; i < length; ++i) {
    if (bytes[i] == 0 || (bytes[i] - 1U) / 2 == tag_of(at + i)) continue;
    errno = 0;
    return pair.fail("unlocked read: byte " + std::to_string(at + i) + " is of chunk " +
                     std::to_string((bytes[i] - 1) / 2) + " or so");
  }
}

void read_freely(std::vector<std::unique_ptr<Pair>>& pairs, unsigned seed) {
  std::mt19937_64 random(seed);
  // In one read many chunks, so that commits overtake it.
  Bytes bytes(chunk_size > 0 ? kMaxBytes : 100'000);
  while (!finished && !failed) {
    Pair& pair = *pairs[random() % pairs.size()];
    const int past_cache = chunk_size > 0 && random() % 2 == 0 ? O_DIRECT : 0;
    const int fd = ::open(pair.mounted().c_str(), O_RDONLY | O_CLOEXEC | past_cache);
    if (fd < 0) continue;  // it is being renamed or created
    for (int i = 0; i < 20 && !finished; ++i) {
      const std::uint64_t at = random() % kMaxBytes;
      const ssize_t got = ::pread(fd, bytes.data(), 1 + random() % bytes.size(), static_cast<off_t>(at));
      if (got < 0) pair.fail("unlocked read at " + std::to_string(at));
      if (chunk_size > 0 && got > 0) check_tags(pair, at, bytes, static_cast<std::size_t>(got));
    }
    ::close(fd);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5 && argc != 6) {
    std::fputs("usage: random_changes MOUNTED_DIRECTORY SHADOW_DIRECTORY SEED OPERATIONS [CHUNK_SIZE]\n", stderr);
    return 2;
  }
  if (argc == 6) chunk_size = std::strtoul(argv[5], nullptr, 10);
  const auto seed = static_cast<unsigned>(std::strtoul(argv[3], nullptr, 10));
  const int operations = static_cast<int>(std::strtol(argv[4], nullptr, 10)) / kThreads;
  std::vector<std::vector<std::unique_ptr<Pair>>> pairs(kThreads);
  for (int thread = 0; thread < kThreads; ++thread) {
    for (int file = 0; file < kFilesOfEach; ++file) {
      const std::string name = "/random-" + std::to_string(thread) + "-" + std::to_string(file);
      pairs[thread].push_back(std::make_unique<Pair>(argv[1] + name, argv[2] + name));
    }
  }
  std::list<std::thread> readers;
  readers.emplace_back([&] { read_under_lock(pairs[0], seed + 100); });
  readers.emplace_back([&] { read_freely(pairs[1], seed + 200); });
  if (chunk_size > 0) {
    readers.emplace_back([&] { read_freely(pairs[1], seed + 300); });
  }
  std::list<std::thread> writers;
  for (int thread = 0; thread < kThreads; ++thread) {
    writers.emplace_back([&, thread] { Changer(pairs[thread], seed * kThreads + thread).run(operations); });
  }
  for (auto& writer : writers)
    writer.join();
  finished = true;
  for (auto& reader : readers)
    reader.join();
  return failed ? 1 : 0;
}
