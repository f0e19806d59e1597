// File operations that see stores as directories: what is beneath them reads as ordinary, read-only files.
//
// A store is a file of the suffix .b2z or .b2e that is one by its content, or a directory of the suffix .b2d with an
// embed frame (frame/store/store.h). Everything above works with paths and descriptors as ever; a descriptor of
// something inside a store is one of the store's file, and a table here knows what it stands for. All else goes to
// `base` untouched. Nothing inside a store can be changed: EROFS. A group's metadata are extended attributes of its
// directory.
//
// Whether something is a store is remembered as long as its file does not change, of thousands of files; what a store
// holds is parsed when something in it is asked for, and kept for those that were used last.
//
// Thread safety: internally synchronised. Lock order: a store that is parsed, then the maps. Ownership: `base` must
// outlive this. Errors: as file_ops.h; a damaged store is a directory that cannot be listed, nor anything opened in it.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "codec/base/mutex.h"
#include "frame/base/lru_cache.h"
#include "frame/io/byte_source.h"
#include "frame/io/file_ops.h"
#include "frame/store/store.h"

namespace cframefs::frame {

class StoreFiles final : public FileOps {
 public:
  explicit StoreFiles(FileOps& base) : base_(base) {}

  Result<int> open_at(int dir, const std::string& path, int flags) override;
  Result<int> open_named(const std::string& path, int flags) override;
  Result<int> reopen(int fd, int flags) override;
  Result<std::vector<std::uint8_t>> handle_of(int fd) override;
  Result<int> open_handle(int mount, ByteView handle, int flags) override {
    return base_.open_handle(mount, handle, flags);
  }
  void close(int fd) override;
  Result<std::size_t> pread(int fd, ByteSpan into, FileOffset at) override;
  Result<struct stat> status(int fd) override;
  Result<struct stat> status_at(int dir, const std::string& path) override;
  Result<struct statvfs> filesystem_status(int fd) override { return base_.filesystem_status(fd); }
  Result<std::vector<DirectoryEntry>> list(int dir_fd) override;
  /// Paths and sizes of all leaves of the open store that are no files of their own, in any order: its directories need
  /// not be walked for them, of which there can be thousands for each.
  Result<std::vector<std::pair<std::string, std::uint64_t>>> leaves(int fd);
  Result<std::string> read_link(int fd) override;
  Result<FileOffset> seek(int fd, FileOffset from, int whence) override;
  void note_access(int fd) override { base_.note_access(fd); }
  void prefetch(int fd, FileOffset at, std::uint64_t length) override;
  bool is_on_disk(int fd) const override;
  Result<void> check_rights(int fd, int rights) override { return base_.check_rights(fd, rights); }
  Result<std::vector<std::string>> list_attributes(int fd) override;
  Result<std::string> get_attribute(int fd, const std::string& name) override;

  Result<int> create_at(int dir, const std::string& path, int flags, mode_t mode) override;
  Result<void> pwrite(int fd, ByteView from, FileOffset at) override { return base_.pwrite(fd, from, at); }
  Result<void> truncate(int fd, std::uint64_t size) override { return base_.truncate(fd, size); }
  Result<void> allocate(int fd, int mode, FileOffset at, std::uint64_t length) override {
    return base_.allocate(fd, mode, at, length);
  }
  Result<void> flush(int fd) override { return base_.flush(fd); }
  Result<void> sync(int fd, bool data_only) override { return base_.sync(fd, data_only); }
  void start_writeback(int fd, FileOffset at, std::uint64_t length) override { base_.start_writeback(fd, at, length); }
  Result<void> rename_at(int from_dir, const std::string& from, int to_dir, const std::string& to,
                         unsigned flags) override;
  Result<void> remove_at(int dir, const std::string& path, bool directory) override;
  Result<void> make_directory_at(int dir, const std::string& path, mode_t mode) override;
  Result<void> make_node_at(int dir, const std::string& path, mode_t mode, dev_t device) override;
  Result<void> link_at(int fd, int to_dir, const std::string& to) override;
  Result<void> make_symlink_at(const std::string& target, int dir, const std::string& path) override;
  Result<void> change_mode(int fd, mode_t mode) override;
  Result<void> change_owner(int fd, uid_t user, gid_t group) override;
  Result<void> set_times(int fd, const std::array<struct timespec, 2>& times) override;
  Result<void> set_attribute(int fd, const std::string& name, const std::string& value, int flags) override;
  Result<void> remove_attribute(int fd, const std::string& name) override;
  Result<bool> try_lock(int fd, int operation) override { return base_.try_lock(fd, operation); }

 private:
  /// A store, and the file that it is read from.
  struct Known {
    std::shared_ptr<const Descriptor> file;  // null in one that was only looked at
    struct stat status {};                   // of the file; of a directory's store that of the directory
    struct stat holder {};                   // of the file that holds the bytes
    bool on_directory = false;               // files of the directory come first
    bool is_zip = false;

    // What it holds, parsed when first asked for, and again after it was dropped.
    mutable codec::Mutex mutex;
    mutable std::weak_ptr<const Store> store GUARDED_BY(mutex);
    mutable std::optional<Error> damage GUARDED_BY(mutex);
  };
  /// What a store holds, or why it is damaged.
  struct Content {
    std::shared_ptr<const Store> store;
    std::optional<Error> damage;
  };
  /// Whether a file or directory of this state is a store.
  struct Verdict {
    struct stat status {};
    struct stat holder {};
    bool is_store = false;
  };
  using Key = std::pair<std::uint64_t, std::uint64_t>;  // device, inode of the file that holds the bytes
  struct KeyHash {
    std::size_t operator()(const Key& key) const { return std::hash<std::uint64_t>()(key.second * 31 + key.first); }
  };
  /// How a file or directory of a store's name lies on disk.
  struct Candidate;
  /// Somewhere in a store.
  struct Place {
    std::shared_ptr<const Known> known;
    std::string inside;  // beneath the store, "" for itself
  };
  /// What a descriptor stands for.
  struct Opened {
    Place place;
    std::shared_ptr<const ByteSource> leaf;  // null for directories
    bool is_member = false;                  // a file of its own in the directory of a store
  };

  std::shared_ptr<const Opened> opened(int fd) const;
  void enter(int fd, Opened opened);
  /// What is known of the store itself is enough where nothing in it is asked for: a glance takes no descriptor and
  /// parses nothing.
  enum class Look : std::uint8_t { glance, open };
  std::optional<Place> place_of(int dir, const std::string& path, Look look);
  std::shared_ptr<const Known> store_at(int dir, const std::string& path, Look look);
  std::optional<Candidate> candidate_at(int dir, const std::string& path) const;
  std::shared_ptr<const Known> open_candidate(int dir, const std::string& path, const Candidate& candidate) const;
  Result<bool> is_store(const Known& known) const;
  std::unique_ptr<ByteSource> source_of(const Known& known) const;
  Content content_of(const Known& known) const;
  Result<struct stat> status_inside(const Place& place) const;
  Result<int> open_inside(const Place& place, int flags);
  Result<std::vector<DirectoryEntry>> list_inside(int dir_fd, const Place& place);
  /// Whether the descriptor is, to `base_`, the very directory or file that it stands for.
  bool is_itself(int fd, const Opened& opened) const;
  bool is_directory_on_disk(int fd, const Opened& opened) const;
  Result<std::string> shown_acl(const Opened& opened) const;
  /// The frame with the metadata of an open directory; null if there is none.
  Result<std::shared_ptr<const Container>> metadata_of(int fd, const Opened& opened) const;
  /// EROFS for what lies inside a store, and for a store itself unless `whole`.
  Result<void> check_outside(int dir, const std::string& path, bool whole = false);
  /// EROFS for what is open inside a store.
  Result<void> check_changeable(int fd, const char* doing) const;

  FileOps& base_;
  const std::shared_ptr<InflateMemory> inflate_memory_ = std::make_shared<InflateMemory>();
  std::atomic<std::size_t> opened_count_{0};
  mutable std::shared_mutex opened_mutex_;
  std::unordered_map<int, std::shared_ptr<const Opened>> opened_;  // guarded by opened_mutex_

  // Far more verdicts than stores, of which each takes a descriptor, and of these more than what they hold.
  static constexpr std::size_t kMaxVerdicts = 16384;
  static constexpr std::size_t kMaxKnown = 128;
  static constexpr std::size_t kMaxContent = std::size_t{24} << 20;
  LruCache<Key, Verdict, KeyHash> verdicts_{kMaxVerdicts};
  LruCache<Key, std::shared_ptr<const Known>, KeyHash> known_{kMaxKnown};
  mutable LruCache<Key, std::shared_ptr<const Store>, KeyHash> contents_{kMaxContent};
};

}  // namespace cframefs::frame
