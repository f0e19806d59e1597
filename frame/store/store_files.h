// File operations that show stores as directories of ordinary, read-only files.
//
// A store is a .b2z file that holds an embed frame, a .b2e file, or a .b2d directory with an embed frame
// (frame/store/store.h). Callers use paths and descriptors as for other files. A descriptor of something inside a store
// is a descriptor of the store's file, and the table opened_ records what it represents. All other calls go to `base`.
// Changes inside a store fail with EROFS. A group's metadata are extended attributes of its directory.
//
// Whether a file is a store is cached for thousands of files, until the file changes. A store is parsed when a caller
// accesses something in it, and the contents of the stores used last are cached.
//
// Thread safety: internally synchronised. Lock order: Known::mutex, then the maps. Ownership: `base` must outlive this.
// Errors: as file_ops.h. A damaged store is a directory that cannot be listed, and nothing in it can be opened.
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
#include "frame/io/read_only_files.h"
#include "frame/store/store.h"

namespace cframefs::frame {

class StoreFiles final : public ReadOnlyFiles {
 public:
  explicit StoreFiles(FileOps& base) : ReadOnlyFiles("a store cannot be changed"), base_(base) {}

  Result<OpenFile> open_at(OpenFile dir, const std::string& path, int flags) override;
  Result<OpenFile> open_named(const std::string& path, int flags) override;
  Result<OpenFile> reopen(OpenFile file, int flags) override;
  Result<std::vector<std::uint8_t>> handle_of(OpenFile file) override;
  Result<OpenFile> open_handle(OpenFile mount, ByteView handle, int flags) override {
    return base_.open_handle(mount, handle, flags);
  }
  void close(OpenFile file) override;
  Result<std::size_t> pread(OpenFile file, ByteSpan into, FileOffset at) override;
  Result<struct stat> status(OpenFile file) override;
  Result<FileVersion> version(OpenFile file) override;
  Result<struct stat> status_at(OpenFile dir, const std::string& path) override;
  Result<struct statvfs> filesystem_status(OpenFile file) override { return base_.filesystem_status(file); }
  Result<std::vector<DirectoryEntry>> list(OpenFile dir_fd) override;
  /// Returns paths and sizes of all leaves of the open store that are not files on disk, in any order. Faster than
  /// listing the directories, which may be thousands for each leaf.
  Result<std::vector<std::pair<std::string, std::uint64_t>>> leaves(OpenFile file);
  Result<std::string> read_link(OpenFile file) override;
  Result<FileOffset> seek(OpenFile file, FileOffset from, int whence) override;
  void prefetch(OpenFile file, FileOffset at, std::uint64_t length) override;
  bool is_remote() const override { return base_.is_remote(); }
  bool is_busy() const override { return base_.is_busy(); }
  std::optional<ServerCounts> server_counts() const override { return base_.server_counts(); }
  void expect(OpenFile file, FileOffset at, std::uint64_t length) override;
  Result<void> fetch(OpenFile file, FileOffset at, std::uint64_t length) override;
  std::optional<SystemDescriptor> system_descriptor(OpenFile file) const override;
  Result<void> check_rights(OpenFile file, int rights) override { return base_.check_rights(file, rights); }
  Result<std::vector<std::string>> list_attributes(OpenFile file) override;
  Result<std::string> get_attribute(OpenFile file, const std::string& name) override;
  Result<bool> try_lock(OpenFile file, int operation) override { return base_.try_lock(file, operation); }

  Result<void> flush(OpenFile file) override { return base_.flush(file); }
  Result<void> sync(OpenFile file, bool data_only) override { return base_.sync(file, data_only); }
  void note_access(OpenFile file) override { base_.note_access(file); }
  Result<void> link_at(OpenFile file, OpenFile to_dir, const std::string& to) override;
  Result<void> set_attribute(OpenFile file, const std::string& name, const std::string& value, int flags) override;
  Result<void> remove_attribute(OpenFile file, const std::string& name) override;

 protected:
  ChangeFileOps* changes_at(OpenFile dir, const std::string& path, Entry change) override;
  ChangeFileOps* changes_of(OpenFile file) override;

 private:
  /// A store, and the file that it is read from.
  struct Known {
    std::shared_ptr<const Descriptor> file;  // null after Look::glance
    struct stat status {};                   // of the store's file, or of the directory of a .b2d store
    struct stat holder {};                   // of the file that holds the bytes: embed.b2e in a .b2d store
    bool on_directory = false;               // a .b2d store: files on disk win over embedded frames
    bool is_zip = false;

    // The content: parsed on first access, and again after the cache evicted it.
    mutable codec::Mutex mutex;
    mutable std::weak_ptr<const Store> store GUARDED_BY(mutex);
    mutable std::optional<Error> damage GUARDED_BY(mutex);
  };
  /// The parsed content of a store, or the error of parsing it.
  struct Content {
    std::shared_ptr<const Store> store;
    std::optional<Error> damage;
  };
  /// Whether a file or directory is a store, valid while its version does not change.
  struct Verdict {
    struct stat status {};
    struct stat holder {};
    bool is_store = false;
  };
  using Key = std::pair<std::uint64_t, std::uint64_t>;  // device, inode of the file that holds the bytes
  struct KeyHash {
    std::size_t operator()(const Key& key) const { return std::hash<std::uint64_t>()(key.second * 31 + key.first); }
  };
  /// A file or directory on disk with the suffix of a store.
  struct Candidate;
  /// A path in a store.
  struct Place {
    std::shared_ptr<const Known> known;
    std::string inside;  // relative to the store, "" for the store itself
  };
  /// What a descriptor represents.
  struct Opened {
    Place place;
    std::shared_ptr<const ByteSource> leaf;  // null for directories and members
    bool is_member = false;                  // a file on disk in the directory of a .b2d store
  };

  std::shared_ptr<const Opened> opened(OpenFile file) const;
  void enter(OpenFile file, Opened opened);
  /// How much a lookup needs. `glance` is enough for the store itself: it needs no descriptor and parses nothing.
  /// `open` gives access to the content.
  enum class Look : std::uint8_t { glance, open };
  Result<std::optional<Place>> place_of(OpenFile dir, const std::string& path, Look look);
  Result<std::shared_ptr<const Known>> store_at(OpenFile dir, const std::string& path, Look look);
  Result<std::optional<Candidate>> candidate_at(OpenFile dir, const std::string& path) const;
  Result<std::shared_ptr<const Known>> open_candidate(OpenFile dir, const std::string& path,
                                                      const Candidate& candidate) const;
  Result<bool> is_store(const Known& known) const;
  Result<std::unique_ptr<ByteSource>> source_of(const Known& known) const;
  Content content_of(const Known& known) const;
  Result<struct stat> status_inside(const Place& place) const;
  Result<OpenFile> open_inside(const Place& place, int flags);
  Result<OpenFile> open_place(OpenFile dir, const std::string& path, const Place& place, int flags);
  Result<std::vector<DirectoryEntry>> list_inside(OpenFile dir_fd, const Place& place);
  /// Returns true if the descriptor represents the store itself, so that `base_` sees the same directory or file.
  bool is_itself(OpenFile file, const Opened& opened) const;
  bool is_directory_on_disk(OpenFile file, const Opened& opened) const;
  Result<std::string> shown_acl(const Opened& opened) const;
  /// Returns the frame with the metadata of an open directory, or nullptr if the directory has none.
  Result<std::shared_ptr<const Container>> metadata_of(OpenFile directory, const Opened& opened) const;

  FileOps& base_;
  const std::shared_ptr<InflateMemory> inflate_memory_ = std::make_shared<InflateMemory>();
  std::atomic<std::size_t> opened_count_{0};
  mutable std::shared_mutex opened_mutex_;
  std::unordered_map<std::int32_t, std::shared_ptr<const Opened>> opened_;  // guarded by opened_mutex_

  // Verdicts are small. A known store takes a descriptor. Contents are bounded by bytes.
  static constexpr std::size_t kMaxVerdicts = 16384;
  static constexpr std::size_t kMaxKnown = 128;
  static constexpr std::size_t kMaxContent = std::size_t{24} << 20;
  LruCache<Key, Verdict, KeyHash> verdicts_{kMaxVerdicts};
  LruCache<Key, std::shared_ptr<const Known>, KeyHash> known_{kMaxKnown};
  mutable LruCache<Key, std::shared_ptr<const Store>, KeyHash> contents_{kMaxContent};
};

}  // namespace cframefs::frame
