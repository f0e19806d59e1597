// The part of a write-back that knows of n-d arrays: what programs write to one, and how that gets into its chunks.
#include <algorithm>
#include <cstring>
#include <utility>

#include "fs/write_back.h"

namespace cframefs::fs {

codec::Result<std::uint64_t> WriteBack::write_array(std::uint64_t at, codec::ByteView bytes) {
  const std::uint64_t before = dirty_.size();
  const auto head = array_->check_write(at, bytes, before);
  if (!head) return head;
  auto done = write_locked(at + *head, bytes.subspan(*head));
  if (!done) return done;
  note_head(before);
  return at;
}

void WriteBack::note_head(std::uint64_t size_before) {
  if (!array_ || array_->head_bytes() == 0 || array_->rows_at(size_before) == array_->rows_at(dirty_.size())) return;
  new_head_ = std::exchange(head_was_read_, false) || new_head_;
}

bool WriteBack::take_new_head() {
  codec::MutexLock lock(mutex_);
  return std::exchange(new_head_, false);
}

codec::Result<void> WriteBack::check_whole() {
  codec::MutexLock lock(mutex_);
  if (!array_ || array_->whole(dirty_.size()) == dirty_.size()) return {};
  return codec::invalid("the last row of the array is not whole");
}

/// What stands in front of an array's items, as the programs' view has it.
Buffer WriteBack::copy_head(std::uint64_t at, std::uint64_t length) {
  const std::vector<std::uint8_t> head = array_->head_at(dirty_.size());
  Buffer copy = shared_.route.pool().get(length);
  std::memcpy(copy.bytes().data(), head.data() + at, length);
  head_was_read_ = true;
  return copy;
}

codec::Result<void> WriteBack::store_array(const Batch& batch, const ArrayChanges& array) {
  const codec::EncodeParameters encode = array.encoding(encode_);
  if (!array.is_flat()) {
    return store_in_order(encode, chunks_of(batch), batch.layer.chunksize());
  }
  auto plan = array.plan(batch.layer, batch.generation, shared_.route);
  if (!plan) return codec::Failure(plan.error());
  if (plan->kept_bytes < writer_->nbytes()) {
    if (auto cut = writer_->resize(plan->kept_bytes); !cut) return cut;
  }
  if (auto done = store_in_order(encode, std::move(plan->chunks), array.chunk_bytes()); !done) return done;
  if (writer_->nbytes() < plan->nbytes) {
    if (auto grown = writer_->resize(plan->nbytes); !grown) return grown;
  }
  return plan->layer.empty() ? codec::Result<void>() : writer_->set_metalayer(array.layer_name(), plan->layer);
}

}  // namespace cframefs::fs
