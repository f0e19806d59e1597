// A host of write-backs without a mount: shows frames by a function of the test, and commits nothing in the background.
//
// Thread safety: as WriteBackHost.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "fs/write/write_back_host.h"

namespace cframefs::test {

class FakeWriteBackHost : public fs::WriteBackHost {
 public:
  using ViewOf = std::function<codec::Result<std::shared_ptr<const frame::FlatView>>(
      std::shared_ptr<const frame::Container> container)>;

  explicit FakeWriteBackHost(ViewOf view_of) : view_of_(std::move(view_of)) {}

  std::uint64_t next_snapshot() override {
    static std::atomic<std::uint64_t> last{0};
    return ++last;
  }
  codec::Result<std::shared_ptr<const frame::FlatView>> view_of(std::shared_ptr<const frame::Container> container,
                                                                const std::string& /*path*/) override {
    return view_of_(std::move(container));
  }
  frame::NewFrame choose_parameters(codec::ByteView /*first_chunk*/) override { return {}; }
  void committed(const fs::CommittedVersion& /*version*/) override {}
  void became_dirty() override {}
  void much_is_dirty() override {}
  void make_room(std::uint64_t /*most*/) override {}

 private:
  const ViewOf view_of_;
};

}  // namespace cframefs::test
