// A directory in memory that simulates power cuts.
//
// Each sector of 512 bytes of each unsynced write may be lost or kept independently. Changes of the directory's names
// are lost or kept in order: a kept change implies all changes before it. crash_images() returns the directories that a
// power cut now could leave.
//
// FailingFiles injects errors. Thread safety: one thread. Errors: io with the usual errno, ENOSYS for calls that
// writers of frames do not make.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "frame/io/file_ops.h"

namespace cframefs::test {

using DiskBytes = std::vector<std::uint8_t>;
/// Files by name.
using DiskImage = std::map<std::string, DiskBytes>;

class SimulatedDisk final : public frame::FileOps {
 public:
  static constexpr frame::OpenFile kDirectory{1000};  // the directory

  /// `directory_name`: if not empty, the name by which paths refer to the directory itself, as that of a sparse frame.
  explicit SimulatedDisk(const DiskImage& image, std::string directory_name = {});

  /// Called before anything becomes durable.
  void before_sync(std::function<void()> call) { before_sync_ = std::move(call); }

  /// Returns the directory as programs see it, without a power cut.
  DiskImage now() const;
  /// Calls `take` with each directory that a power cut now could leave, perhaps several times with the same one. Varies
  /// the unsynced writes of `file` and keeps all writes of the other files. Empty: varies each file in turn.
  void crash_images(const std::string& file, const std::function<void(const DiskImage&)>& take) const;

  codec::Result<frame::OpenFile> open_at(frame::OpenFile dir, const std::string& path, int flags) override;
  codec::Result<frame::OpenFile> reopen(frame::OpenFile file, int flags) override;
  codec::Result<std::vector<std::uint8_t>> handle_of(frame::OpenFile) override { return unknown(); }
  codec::Result<frame::OpenFile> open_handle(frame::OpenFile, codec::ByteView, int) override { return unknown(); }
  void close(frame::OpenFile file) override;
  std::optional<frame::SystemDescriptor> system_descriptor(frame::OpenFile) const override { return std::nullopt; }
  codec::Result<std::size_t> pread(frame::OpenFile handle, codec::ByteSpan into, frame::FileOffset at) override;
  codec::Result<struct stat> status(frame::OpenFile file) override;
  codec::Result<struct stat> status_at(frame::OpenFile dir, const std::string& path) override;
  codec::Result<std::vector<frame::DirectoryEntry>> list(frame::OpenFile dir_fd) override;
  codec::Result<frame::OpenFile> create_at(frame::OpenFile dir, const std::string& path, int flags,
                                           mode_t mode) override;
  codec::Result<void> pwrite(frame::OpenFile handle, codec::ByteView from, frame::FileOffset at) override;
  codec::Result<void> truncate(frame::OpenFile handle, std::uint64_t size) override;
  codec::Result<void> allocate(frame::OpenFile handle, int mode, frame::FileOffset at, std::uint64_t length) override;
  codec::Result<void> flush(frame::OpenFile /*file*/) override { return {}; }
  codec::Result<void> sync(frame::OpenFile file, bool data_only) override;
  codec::Result<void> rename_at(frame::OpenFile from_dir, const std::string& from, frame::OpenFile to_dir,
                                const std::string& to, unsigned flags) override;
  codec::Result<void> remove_at(frame::OpenFile dir, const std::string& path, bool directory) override;

  // Advice has no effect on the simulation.
  void note_access(frame::OpenFile) override {}
  void prefetch(frame::OpenFile, frame::FileOffset, std::uint64_t) override {}
  void start_writeback(frame::OpenFile, frame::FileOffset, std::uint64_t) override {}

  // Rights, times and locks are not simulated.
  codec::Result<void> check_rights(frame::OpenFile, int) override { return {}; }
  codec::Result<std::vector<std::string>> list_attributes(frame::OpenFile) override {
    return std::vector<std::string>();
  }
  codec::Result<std::string> get_attribute(frame::OpenFile, const std::string&) override { return unknown(); }
  codec::Result<void> change_mode(frame::OpenFile, mode_t) override { return {}; }
  codec::Result<void> change_owner(frame::OpenFile, uid_t, gid_t) override { return {}; }
  codec::Result<void> set_times(frame::OpenFile, const std::array<struct timespec, 2>&) override { return {}; }
  codec::Result<bool> try_lock(frame::OpenFile, int) override { return true; }
  codec::Result<bool> try_byte_lock(frame::OpenFile, frame::FileOffset, frame::ByteLock) override { return true; }

  codec::Result<struct statvfs> filesystem_status(frame::OpenFile) override { return unknown(); }
  codec::Result<std::string> read_link(frame::OpenFile) override { return unknown(); }
  codec::Result<frame::FileOffset> seek(frame::OpenFile, frame::FileOffset, int) override { return unknown(); }
  codec::Result<void> make_directory_at(frame::OpenFile, const std::string&, mode_t) override { return unknown(); }
  codec::Result<void> make_node_at(frame::OpenFile, const std::string&, mode_t, dev_t) override { return unknown(); }
  codec::Result<void> link_at(frame::OpenFile, frame::OpenFile, const std::string&) override { return unknown(); }
  codec::Result<void> make_symlink_at(const std::string&, frame::OpenFile, const std::string&) override {
    return unknown();
  }
  codec::Result<void> set_attribute(frame::OpenFile, const std::string&, const std::string&, int) override {
    return unknown();
  }
  codec::Result<void> remove_attribute(frame::OpenFile, const std::string&) override { return unknown(); }

 private:
  struct Change {
    enum class Kind : std::uint8_t { write, truncate, zero };
    Kind kind = Kind::write;
    std::uint64_t at = 0;  // offset; for truncate the new size
    DiskBytes bytes;
  };
  struct File {
    DiskBytes now;
    DiskBytes durable;
    std::vector<Change> unsynced;
    long changes = 0;  // counts them, as the time of the last change
  };
  struct Opened {
    std::shared_ptr<File> file;  // null: the directory
    bool is_writable = false;
  };
  using Names = std::map<std::string, std::shared_ptr<File>>;
  struct Unit;

  static codec::Failure unknown();
  static Names names_of(const DiskImage& image);
  static void apply(DiskBytes& bytes, const Change& change);
  static void apply_piece(DiskBytes& bytes, const Change& change, std::size_t begin, std::size_t end);
  static std::vector<Unit> units_of(const File& file);
  static void kept_units(const File& file, const std::function<void(const DiskBytes&)>& take);
  static void kept_writes(const File& file, const std::function<void(const DiskBytes&)>& take);

  static void images_of(const Names& names, const std::string& file, const std::function<void(const DiskImage&)>& take);

  codec::Result<Opened> opened(frame::OpenFile file) const;
  codec::Result<std::shared_ptr<File>> file_of(frame::OpenFile file) const;
  /// As file_of(); EBADF if the file is open for reading only.
  codec::Result<std::shared_ptr<File>> writable_file(frame::OpenFile file) const;
  /// Refuses what is not a directory, and names that lead out of it.
  codec::Result<void> check_entry(frame::OpenFile dir, const std::string& path) const;
  static void change(File& file, Change change);
  frame::OpenFile give_descriptor(std::shared_ptr<File> file, int flags);

  const std::string directory_name_;
  Names names_;
  Names durable_names_;
  std::vector<Names> unsynced_names_;  // the names after each unsynced change
  std::map<std::int32_t, Opened> open_{{kDirectory.value, {}}};
  std::int32_t next_fd_ = kDirectory.value + 1;
  std::function<void()> before_sync_;
};

}  // namespace cframefs::test
