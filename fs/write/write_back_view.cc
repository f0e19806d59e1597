// Reads a write-back: what programs see, assembled from the layers and the committed frame.
#include <algorithm>
#include <cstring>
#include <utility>

#include "fs/write/write_back.h"

namespace cframefs::fs {
namespace {

// Attempts to read while another program is changing the frame.
constexpr int kViewAttempts = 5;

}  // namespace

/// A list of segments in order, which merges adjacent segments of the same source.
class WriteBack::SegmentList {
 public:
  using Source = Segment::Source;

  void add(Source source, std::uint64_t begin, std::uint64_t end, const std::uint8_t* bytes = nullptr) {
    if (begin >= end) return;
    if (source != Source::held && !found_.empty() && found_.back().source == source) {
      found_.back().length += end - begin;
    } else {
      found_.push_back({source, begin, end - begin, bytes});
    }
  }
  /// Adds [begin, end) of the chunk that begins at `chunk_begin`.
  void add_chunk(const DirtyLayer::Chunk& chunk, std::uint64_t chunk_begin, std::uint64_t begin, std::uint64_t end) {
    const std::uint64_t held = std::clamp(chunk_begin + (chunk ? chunk->bytes().size() : 0), begin, end);
    if (begin < held) add(Source::held, begin, held, chunk->bytes().data() + (begin - chunk_begin));
    add(Source::zeros, held, end);
  }
  /// Adds [at, end), which lies in one chunk, as `layer` over `below` has it; null: over the committed frame.
  void add_view(const DirtyLayer& layer, const DirtyLayer* below, std::uint64_t at, std::uint64_t end) {
    const auto add_below = [&](std::uint64_t from, std::uint64_t to) {
      const std::uint64_t kept = std::clamp(layer.kept(), from, to);
      if (below == nullptr) {
        add(Source::stored, from, kept);
      } else if (from < kept) {
        add_view(*below, nullptr, from, kept);
      }
      add(Source::zeros, kept, to);
    };
    const auto number = static_cast<std::int64_t>(at / layer.chunksize());
    const std::uint64_t begin = at / layer.chunksize() * layer.chunksize();
    if (const DirtyLayer::Chunk* chunk = layer.chunks().find(number)) {
      add_chunk(*chunk, begin, at, end);
      return;
    }
    if (const ChunkPatches* patches = layer.chunks().find_patches(number)) {
      for (const auto& [from, piece] : patches->pieces()) {
        const std::uint64_t first = std::clamp(begin + from, at, end);
        const std::uint64_t last = std::clamp(begin + from + piece.size(), at, end);
        if (first >= last) continue;
        add_below(at, first);
        add(Source::held, first, last, piece.data() + (first - begin - from));
        at = last;
      }
    }
    add_below(at, end);
  }
  std::vector<Segment> release() { return std::move(found_); }

 private:
  std::vector<Segment> found_;
};

std::vector<WriteBack::Segment> WriteBack::segments(std::uint64_t at, std::uint64_t length) const {
  SegmentList list;
  const std::uint64_t chunksize = dirty_.chunksize();
  for (const std::uint64_t end = at + length; at < end;) {
    const std::uint64_t stop = end - at > chunksize - at % chunksize ? at + chunksize - at % chunksize : end;
    list.add_view(dirty_, committing_ ? &*committing_ : nullptr, at, stop);
    at = stop;
  }
  return list.release();
}

codec::Result<void> WriteBack::copy_view(std::uint64_t at, codec::ByteSpan out) {
  for (const Segment& segment : segments(at, out.size())) {
    const codec::ByteSpan into = out.subspan(segment.begin - at, segment.length);
    switch (segment.source) {
      case Segment::Source::zeros:
        std::fill(into.begin(), into.end(), std::uint8_t{0});
        break;
      case Segment::Source::held:
        std::memcpy(into.data(), segment.bytes, into.size());
        break;
      case Segment::Source::stored: {
        Reply reply{ReadPermit::without_turn()};
        auto done = shared_.read_path.read(*snapshot_, frame::FlatOffset{segment.begin}, segment.length, reply);
        if (!done) {
          shared_.read_path.log_damage(snapshot_->damage().take());
          return done;
        }
        if (reply.size() != segment.length) return codec::corrupt("the frame is shorter than its header says");
        reply.copy_to(into.data());
        break;
      }
    }
  }
  return {};
}

bool WriteBack::is_changed_by_others(const std::shared_ptr<const FrameSnapshot>& snapshot) {
  if (state_.may_change_file() || snapshot_ != snapshot) return false;
  const auto disk = identity_on_disk();
  return disk && !has_same_content(*disk);
}

codec::Result<void> WriteBack::read(std::uint64_t at, std::uint64_t length, Reply& reply,
                                    const std::function<void(const std::shared_ptr<const FrameSnapshot>&)>& note) {
  struct Part {
    Segment segment;
    Buffer copy;
  };
  for (int attempt = 1;; ++attempt) {
    // A stale file can be read as long as its old version exists: another file has its name.
    if (auto followed = refresh(); !followed && followed.error().kind != codec::ErrorKind::stale) return followed;
    std::vector<Part> parts;
    std::shared_ptr<const FrameSnapshot> snapshot;
    std::uint64_t foreign_states = 0;
    {
      codec::MutexLock lock(mutex_);
      if (auto there = check_readable(); !there) return there;
      if (at >= dirty_.size()) return {};
      snapshot = snapshot_;
      foreign_states = foreign_states_;
      const std::uint64_t end = at + std::min(length, dirty_.size() - at);
      std::uint64_t behind = at;
      if (array_ && at < array_->head_bytes()) {
        behind = std::min(array_->head_bytes(), end);
        parts.push_back({{Segment::Source::held, at, behind - at, nullptr}, copy_head(at, behind - at)});
      }
      for (const Segment& segment : segments(behind, end - behind)) {
        parts.push_back({segment, {}});
        if (segment.source != Segment::Source::held) continue;
        parts.back().copy = shared_.read_path.pool().get(segment.length);
        std::memcpy(parts.back().copy.bytes().data(), segment.bytes, segment.length);
      }
    }
    codec::Result<void> done;
    for (Part& part : parts) {
      if (!done) break;
      const std::uint64_t before = reply.size();
      if (part.segment.source == Segment::Source::zeros) {
        reply.add_zeros(part.segment.length);
      } else if (part.segment.source == Segment::Source::held) {
        reply.add(std::move(part.copy), part.segment.length);
      } else {
        note(snapshot);
        done = shared_.read_path.read(*snapshot, frame::FlatOffset{part.segment.begin}, part.segment.length, reply);
      }
      if (done && reply.size() - before != part.segment.length)
        done = codec::corrupt("the frame is shorter than its header says");
    }
    const auto damage = done ? DamageNotes::List() : snapshot->damage().take();
    {
      codec::MutexLock lock(mutex_);
      if (foreign_states_ == foreign_states && !is_changed_by_others(snapshot)) {
        shared_.read_path.log_damage(damage);
        return done;
      }
      if (!state_.is_usable() || attempt == kViewAttempts)
        return codec::stale("another program changed the frame while it was read");
    }
    reply.clear();
  }
}

}  // namespace cframefs::fs
