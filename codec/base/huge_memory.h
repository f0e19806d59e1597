// Memory that is used for long and in small parts: in huge pages of 2 MiB where the system has them, and resident from
// the beginning. So its first use costs no page fault for each small page.
//
// Thread safety: immutable. Ownership: owns the memory. Errors: std::bad_alloc; where the system lacks huge pages, the
// memory has small ones.
#pragma once

#include <cstddef>
#include <memory>

namespace cframefs::codec {

class HugeMemory {
 public:
  /// `size`: bytes, rounded up to huge pages. Up to 4 MiB are made resident.
  explicit HugeMemory(std::size_t size);

  void* data() const { return data_.get(); }
  std::size_t size() const { return size_; }

 private:
  struct Free {
    void operator()(void* data) const;
  };

  std::size_t size_;
  std::unique_ptr<void, Free> data_;
};

}  // namespace cframefs::codec
