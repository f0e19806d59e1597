// The part of a write-back that handles n-d arrays: writes to them, and how they get into chunks.
#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/core.h>

#include "frame/numpy/npy_file.h"
#include "frame/numpy/npy_header.h"
#include "frame/write/frame_metalayers.h"
#include "frame/write/frame_replacement.h"
#include "fs/write/write_back.h"

namespace cframefs::fs {
namespace {

// How long a page write of the kernel waits for the header of its array.
constexpr std::chrono::milliseconds kHeadPatience{1000};

}  // namespace

void WriteBack::wait_for_head(std::uint64_t at) {
  if (at == 0) return;
  const auto until = std::chrono::steady_clock::now() + kHeadPatience;
  codec::MutexLock lock(mutex_);
  while (head_.delays_pages() && std::chrono::steady_clock::now() < until)
    head_came_.wait_for(mutex_, kHeadPatience);
  // No header has come: the bytes are rows of the emptied array.
  stop_awaiting_head();
}

void WriteBack::stop_awaiting_head() {
  if (head_.stop_waiting()) head_came_.notify_all();
}

codec::Result<std::uint64_t> WriteBack::write_array(std::uint64_t at, codec::ByteView bytes) {
  auto written = write_array_part(at, bytes);
  stop_awaiting_head();
  return written;
}

codec::Result<std::uint64_t> WriteBack::write_array_part(std::uint64_t at, codec::ByteView bytes) {
  auto head = array_->check_write(at, bytes, dirty_.size());
  if (!head && at == 0 && bytes.size() >= frame::kNpyMagic.size()) {
    // A new array. It must not lie over a layer of the old one.
    while (committing_)
      copied_.wait(mutex_);
    if (!array_) return codec::stale("another program replaced the array by a file that is no array");
    head = array_->check_write(at, bytes, dirty_.size());
    if (head) return write_behind_head(at, bytes, *head);
    const bool is_empty = array_->head_bytes() > 0 && array_->head_bytes() == dirty_.size();
    if (is_empty || head_.awaits_array()) {
      if (auto begun = replace_array(bytes); !begun) return codec::Failure(begun.error());
      return write_new_array(bytes);
    }
  }
  if (!head) return head;
  return write_behind_head(at, bytes, *head);
}

codec::Result<std::uint64_t> WriteBack::write_new_array(codec::ByteView bytes) {
  auto done = write_behind_head(0, bytes, array_->head_bytes());
  named_size_ = array_->named_size();
  stop_awaiting_head();
  return done;
}

/// `head`: how many of the bytes belong to the header.
codec::Result<std::uint64_t> WriteBack::write_behind_head(std::uint64_t at, codec::ByteView bytes, std::uint64_t head) {
  head_.array_came();
  if (head > 0) named_size_.reset();
  const std::uint64_t before = dirty_.size();
  auto done = write_locked(at + head, bytes.subspan(head));
  if (!done) return done;
  note_head(before);
  return at;
}

bool WriteBack::becomes_array(std::uint64_t at, codec::ByteView bytes) {
  if (array_ || !may_become_array_ || at != 0) return false;
  const auto can_become = [&]() NO_THREAD_SAFETY_ANALYSIS { return !array_ && dirty_.size() == 0; };
  bool begun = false;
  if (can_become() && frame::has_npy_magic(bytes)) {
    // The array must not lie over a layer of the file before it.
    while (committing_)
      copied_.wait(mutex_);
    if (can_become()) {
      const auto done = begin_new_array(bytes);
      if (!done) log_once("stored as bytes, not as an array", done.error());
      begun = done.has_value();
    }
  }
  stop_awaiting_head();
  return begun;
}

codec::Result<void> WriteBack::replace_array(codec::ByteView bytes) {
  auto begun = begin_new_array(bytes);
  if (!begun) log_once("the array is not replaced", begun.error());
  return begun;
}

void WriteBack::log_once(const char* what, codec::Error why) {
  why.path = snapshot_->path();
  why.reason = std::string(what) + ": " + why.reason;
  shared_.once.error(why);
}

codec::Result<void> WriteBack::begin_new_array(codec::ByteView bytes) {
  if (auto usable = check_usable(); !usable) return usable;
  if (!has_name_ || snapshot_->container().parameters().kind == frame::ContainerKind::sframe) {
    return codec::invalid("cannot replace the array: it is a sparse frame or has no name");
  }
  auto made = ArrayChanges::from_head(bytes);
  if (!made) return codec::invalid(made.error().reason);
  early_parameters_.reset();
  array_ = std::move(*made);
  new_array_ = NewArray::in_dirty;
  // Nothing of the file below stays: it may be shorter than the header.
  dirty_ = DirtyLayer(ArrayChanges::kPieceBytes, 0);
  dirty_.resize(array_->new_size());
  head_.changed();
  note_dirty();
  return {};
}

/// Undoes begin_new_array(). The caller drops the dirty layer.
void WriteBack::forget_new_array() {
  named_size_.reset();
  head_.array_came();
  stop_awaiting_head();
  if (new_array_ != NewArray::in_dirty) return;
  new_array_ = NewArray::none;
  // The snapshot is an array: its version was adopted.
  auto before = ArrayChanges::of(*snapshot_);
  array_ = before ? std::move(*before) : std::nullopt;
}

void WriteBack::note_head(std::uint64_t size_before) {
  if (!array_ || array_->head_bytes() == 0 || array_->rows_at(size_before) == array_->rows_at(dirty_.size())) return;
  head_.changed();
}

bool WriteBack::take_new_head() {
  codec::MutexLock lock(mutex_);
  return head_.take_change();
}

codec::Result<void> WriteBack::check_whole(Changer by) {
  codec::MutexLock lock(mutex_);
  if (by != nullptr && changed_by_ != nullptr && by != changed_by_) return {};
  if (head_.awaits_array()) return codec::invalid("cannot truncate: the array has a fixed number of rows");
  if (!array_) return {};
  if (array_->whole(dirty_.size()) != dirty_.size()) return codec::invalid("the last row of the array is incomplete");
  return by != nullptr && by == changed_by_ ? check_rows() : codec::Result<void>();
}

codec::Result<void> WriteBack::check_rows() {
  if (!named_size_ || dirty_.size() <= *named_size_) return {};
  const std::uint64_t head = array_->head_bytes();
  const auto more = codec::invalid(fmt::format("the array has {} bytes of rows, its header was written for {}",
                                               dirty_.size() - head, *named_size_ - head));
  log_once("the header of the file follows its rows, and is not the one written", more.value());
  return more;
}

/// Returns the bytes of the array header in the programs' view.
Buffer WriteBack::copy_head(std::uint64_t at, std::uint64_t length) {
  const std::vector<std::uint8_t> head = array_->head_at(dirty_.size());
  Buffer copy = shared_.read_path.pool().get(length);
  std::memcpy(copy.bytes().data(), head.data() + at, length);
  head_.read();
  return copy;
}

codec::Result<void> WriteBack::store_array(const Batch& batch, const ArrayChanges& array) {
  const codec::EncodeParameters encode = array.encoding(encode_);
  if (!array.is_flat()) {
    store_zeros(*writer_, batch.layer.chunks().zeros());
    return store_in_order(*writer_, encode, chunks_of(batch), batch.layer.chunksize());
  }
  auto plan = array.plan(batch.layer, batch.snapshot, shared_.read_path);
  if (!plan) return codec::Failure(plan.error());
  if (plan->kept_bytes < writer_->pending().nbytes()) {
    if (auto cut = writer_->resize(plan->kept_bytes); !cut) return cut;
  }
  store_zeros(*writer_, plan->zeros);
  if (auto done = store_in_order(*writer_, encode, std::move(plan->chunks), array.chunk_bytes()); !done) return done;
  if (writer_->pending().nbytes() < plan->nbytes) {
    if (auto grown = writer_->resize(plan->nbytes); !grown) return grown;
  }
  return plan->layer.empty() ? codec::Result<void>()
                             : frame::FrameMetalayers(*writer_).set_fixed(array.layer_name(), plan->layer);
}

/// Stores the new array in another file, so that the old one stays until the new one is complete.
codec::Result<void> WriteBack::store_new_array(const Batch& batch, const ArrayChanges& array) {
  auto plan = array.plan(batch.layer, batch.snapshot, shared_.read_path, true);
  if (!plan) return codec::Failure(plan.error());
  frame::NewFrame wanted = array.new_frame(encode_, array.rows_at(batch.layer.size()));
  const auto& before = *writer_->container();
  auto layers = before.metalayers();
  if (!layers) return codec::Failure(layers.error());
  for (frame::Metalayer& layer : *layers) {
    const bool is_form = layer.name == "b2nd" || layer.name == "caterva" || layer.name == frame::kFileBytesLayer;
    if (!is_form) wanted.metalayers.push_back(std::move(layer));
  }
  auto beside = frame::FrameReplacement(*writer_).make_beside(wanted);
  if (!beside) return codec::Failure(beside.error());
  frame::FrameWriter& to = *(*beside)->writer;
  for (const std::string& name : before.vlmetalayer_names()) {
    const auto content = before.vlmetalayer(name);
    if (!content) return codec::Failure(content.error());
    if (auto set = frame::FrameMetalayers(to).set_variable(name, *content); !set) return set;
  }
  if (auto done = store_in_order(to, wanted.encode, std::move(plan->chunks), array.chunk_bytes()); !done) return done;
  if (to.pending().nbytes() < plan->nbytes) {
    if (auto grown = to.resize(plan->nbytes); !grown) return grown;
  }
  if (auto done = to.commit(frame::Durability::ordered); !done) return done;
  beside_ = std::move(*beside);
  return {};
}

codec::Result<void> WriteBack::put_new_array_in_place(frame::Durability durability) {
  auto given = frame::FrameReplacement(*writer_).give_place_to(*beside_);
  if (!given && !beside_->file.temporary_name().empty()) return given;
  // The lock is on the old file, which stays open until the lock is released.
  writer_ = std::move(beside_->writer);
  watch_overwrites();
  encode_ = frame::encode_parameters(writer_->parameters());
  parameters_from_ = Parameters::fixed;
  partly_committed_ = !given;
  return given && durability == frame::Durability::durable ? writer_->commit(durability) : given;
}

}  // namespace cframefs::fs
