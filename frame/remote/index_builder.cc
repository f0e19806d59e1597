#include "frame/remote/index_builder.h"

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <thread>
#include <utility>

#include <dirent.h>
#include <fmt/core.h>

#include "frame/remote/frame_look.h"
#include "frame/remote/http/background_thread.h"

namespace cframefs::frame {
namespace {

using codec::Failure;

constexpr std::size_t kThreads = RemoteHeads::kMostInFlight;
constexpr int kLooks = 3;
constexpr std::chrono::milliseconds kProgressPause{50};

/// The bytes of an object, of which all that are read are recorded.
class RecordedObject final : public ByteSource {
 public:
  RecordedObject(RemoteTree& tree, RemoteTree::Node node) : tree_(tree), node_(std::move(node)) {}

  std::uint64_t size() const override { return node_->state.length; }
  bool is_remote() const override { return true; }
  Result<void> read(FileOffset at, ByteSpan into) const override {
    const auto got = tree_.read(*node_, into, at);
    if (!got) return Failure(got.error());
    if (*got < into.size()) return codec::corrupt("the object ends within the bytes that are read");
    const codec::MutexLock lock(mutex_);
    auto& longest = pieces_[at.value];
    if (longest.size() < into.size()) longest.assign(into.begin(), into.end());
    return {};
  }

  /// Returns what was read, in order and without overlaps; nothing if it is more than an index takes.
  std::vector<IndexedObject::Piece> pieces() const {
    const codec::MutexLock lock(mutex_);
    std::vector<IndexedObject::Piece> merged;
    std::uint64_t bytes = 0;
    for (const auto& [at, piece] : pieces_) {
      const std::uint64_t end = merged.empty() ? 0 : merged.back().at + merged.back().bytes.size();
      if (merged.empty() || at > end) {
        merged.push_back({at, piece});
        bytes += piece.size();
      } else if (at + piece.size() > end) {
        const auto rest = piece.begin() + static_cast<std::ptrdiff_t>(end - at);
        merged.back().bytes.insert(merged.back().bytes.end(), rest, piece.end());
        bytes += at + piece.size() - end;
      }
    }
    if (bytes > RemoteIndex::kMostPieceBytes) return {};
    return merged;
  }

 private:
  RemoteTree& tree_;
  const RemoteTree::Node node_;
  mutable codec::Mutex mutex_;
  mutable std::map<std::uint64_t, std::vector<std::uint8_t>> pieces_ GUARDED_BY(mutex_);  // by their places
};

bool is_set(const std::atomic<bool>* stop) {
  return stop != nullptr && stop->load();
}

Failure stopped_failure() {
  return codec::io_error(ECANCELED, "index", "interrupted");
}

}  // namespace

/// Lists all directories.
Result<void> IndexBuilder::find_objects(const IndexWork& work) {
  std::vector<RemoteTree::Node> directories{tree_.root()};
  std::size_t seen = 0;  // a server may list directories without end
  while (!directories.empty()) {
    if (is_set(work.stop)) return stopped_failure();
    const RemoteTree::Node directory = std::move(directories.back());
    directories.pop_back();
    const auto entries = tree_.list(*directory);
    // The last object of the directory was removed.
    if (!entries && codec::is_missing(entries.error()) && !directory->path.empty()) continue;
    if (!entries) return Failure(entries.error());
    for (const DirectoryEntry& entry : *entries) {
      std::string path = directory->path.empty() ? entry.name : directory->path + "/" + entry.name;
      if (path.size() > RemoteIndex::kMostPathBytes) {
        const codec::MutexLock lock(mutex_);
        ++built_.left_out;
      } else if (entry.type == DT_DIR) {
        auto below = tree_.find(directory, entry.name);
        if (!below) return Failure(below.error());
        directories.push_back(std::move(*below));
      } else {
        paths_.push_back(std::move(path));
      }
    }
    if (++seen + paths_.size() + directories.size() > RemoteIndex::kMostObjects)
      return codec::invalid(
          fmt::format("there are more than the {} objects and directories of an index", RemoteIndex::kMostObjects));
    if (work.progress) work.progress(0, paths_.size());
  }
  return {};
}

/// Returns what the index tells of the object; nullopt if it is left out.
Result<std::optional<IndexedObject>> IndexBuilder::look_at(const std::string& path) {
  for (int look = 1;; ++look) {
    const auto node = tree_.find(tree_.root(), path);
    auto error = node ? std::optional<codec::Error>() : std::optional(node.error());
    if (node && ((*node)->is_directory || !(*node)->state.is_identified())) return std::optional<IndexedObject>();
    if (node) {
      const auto object = std::make_shared<const RecordedObject>(tree_, *node);
      const std::string name = path.substr(path.rfind('/') + 1);
      const auto done = is_looked_at(name) ? read_as_look_up(object, name) : Result<void>();
      if (done) return std::optional(IndexedObject{path, (*node)->state, object->pieces()});
      error = done.error();
    }
    if (codec::is_missing(*error) || error->sys == EACCES) return std::optional<IndexedObject>();
    if (error->kind != ErrorKind::stale || look == kLooks) return Failure(*error);
  }
}

void IndexBuilder::fail(const codec::Error& error) {
  has_failed_ = true;
  const codec::MutexLock lock(mutex_);
  if (!failure_) failure_ = error;
}

void IndexBuilder::look_at_objects() {
  while (!has_failed_) {
    const std::size_t number = next_++;
    if (number >= paths_.size()) break;
    auto object = look_at(paths_[number]);
    if (!object) {
      codec::Error error = object.error();
      if (error.path.empty()) error.path = paths_[number];
      fail(error);
      break;
    }
    ++done_;
    const codec::MutexLock lock(mutex_);
    if (*object) {
      built_.looked_at += !(*object)->pieces.empty();
      built_.objects.push_back(std::move(**object));
    } else {
      ++built_.left_out;
    }
  }
  const codec::MutexLock lock(mutex_);
  if (--running_ == 0) ended_.notify_all();
}

Result<BuiltIndex> IndexBuilder::build(const IndexWork& work) {
  if (auto found = find_objects(work); !found) return Failure(found.error());
  std::vector<std::thread> threads;
  const std::size_t wanted = std::min(kThreads, paths_.size());
  while (threads.size() < wanted) {
    {
      const codec::MutexLock lock(mutex_);
      ++running_;
    }
    auto started = start_background_thread([this] { look_at_objects(); });
    if (!started) {
      const codec::MutexLock lock(mutex_);
      --running_;
      if (threads.empty()) return Failure(started.error());
      break;  // fewer do it, too
    }
    threads.push_back(std::move(*started));
  }
  while (true) {
    {
      const codec::MutexLock lock(mutex_);
      if (running_ == 0) break;
      ended_.wait_for(mutex_, kProgressPause);
    }
    if (is_set(work.stop)) fail(stopped_failure().value());
    if (work.progress) work.progress(done_, paths_.size());
  }
  for (std::thread& thread : threads)
    thread.join();
  const codec::MutexLock lock(mutex_);
  if (failure_) return Failure(*failure_);
  return std::move(built_);
}

}  // namespace cframefs::frame
