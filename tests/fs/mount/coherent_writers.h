// The actors of coherent_access.cc that write.
//
// Thread safety: each belongs to one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <fcntl.h>
#include <linux/aio_abi.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "coherent_actor.h"

namespace coherent {

constexpr std::size_t kDeepest = 16;   // asynchronous writes under way
constexpr std::size_t kSparsely = 16;  // "-sparsely": only one slot of this many

/// Writes its share of the slots, again and again.
class Writer : public Actor {
 public:
  using Actor::Actor;

  ~Writer() override {
    if (map_ != nullptr) ::munmap(map_, layout().size());
    if (context_ != 0) ::syscall(SYS_io_destroy, context_);
  }

  void run() override {
    std::vector<std::size_t> own;
    const std::size_t step = is("-sparsely") ? kSparsely : 1;
    for (std::size_t slot = turn_; slot < layout().slots; slot += task_.writers * step)
      own.push_back(slot);
    bytes_ = pages(layout().slot_size * kDeepest);
    if (is("async") && ::syscall(SYS_io_setup, kDeepest, &context_) != 0) fail("io_setup");
    for (int round = 0; round < task_.rounds && !shared_.stop; ++round) {
      if ((fd_ < 0 || is("-reopen")) && !open_to_write()) break;
      if (round % 2 == 1) std::shuffle(own.begin(), own.end(), random_);
      write_all(own);
      if (is("-sparsely") && ::fsync(fd_) != 0) return fail("fsync");
      // What was acknowledged is what a fresh open reads.
      const int fresh = ::open(task_.file.c_str(), O_RDONLY | O_CLOEXEC);
      if (fresh < 0) return fail("open");
      look_somewhere(fresh);
      ::close(fresh);
    }
    if (fd_ >= 0 && ::fsync(fd_) != 0) fail("fsync");
    for (const std::size_t slot : own)
      shared_.slots[slot].durable = shared_.slots[slot].acknowledged.load();
    --shared_.writers;
  }

 private:
  bool open_to_write() {
    const int flags = is("writeonly") ? O_WRONLY : is("direct") || is("async") ? O_RDWR | O_DIRECT : O_RDWR;
    if (!open(flags)) return false;
    if (!is("mapped")) return true;
    if (map_ != nullptr) ::munmap(map_, layout().size());
    void* memory = ::mmap(nullptr, layout().size(), PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    map_ = memory == MAP_FAILED ? nullptr : static_cast<unsigned char*>(memory);
    if (map_ == nullptr) fail("mmap");
    return map_ != nullptr;
  }

  void write_all(const std::vector<std::size_t>& own) {
    const std::size_t deep = is("async") ? kDeepest : 1;
    for (std::size_t i = 0; i < own.size() && !shared_.stop; i += deep) {
      const std::size_t count = std::min(deep, own.size() - i);
      for (std::size_t k = 0; k < count; ++k)
        begin(own[i + k], bytes_.get() + k * layout().slot_size);
      shared_.hot = static_cast<std::uint32_t>(own[i]);
      if (!put(&own[i], count)) return;
      for (std::size_t k = 0; k < count; ++k)
        shared_.slots[own[i + k]].acknowledged = shared_.slots[own[i + k]].begun.load();
      if (!is("-sync")) continue;
      if (::fsync(fd_) != 0) return fail("fsync");
      for (std::size_t k = 0; k < count; ++k)
        shared_.slots[own[i + k]].durable = shared_.slots[own[i + k]].begun.load();
    }
  }

  void begin(std::size_t slot, unsigned char* bytes) {
    const std::uint32_t snapshot = ++shared_.slots[slot].begun;
    fill(bytes, layout().slot_size, static_cast<std::uint32_t>(slot), snapshot);
  }

  bool put(const std::size_t* slots, std::size_t count) {
    const std::size_t size = layout().slot_size;
    if (is("async")) return put_together(slots, count);
    const std::size_t at = *slots * size;
    if (map_ != nullptr) {
      std::memcpy(map_ + at, bytes_.get(), size);
      if (::msync(map_ + at / kPage * kPage, size + at % kPage, MS_SYNC) == 0) return true;
      fail("msync");
      return false;
    }
    if (::pwrite(fd_, bytes_.get(), size, static_cast<off_t>(at)) == static_cast<ssize_t>(size)) return true;
    fail("write");
    return false;
  }

  bool put_together(const std::size_t* slots, std::size_t count) {
    const std::size_t size = layout().slot_size;
    iocb blocks[kDeepest] = {};
    iocb* list[kDeepest];
    io_event events[kDeepest];
    for (std::size_t k = 0; k < count; ++k) {
      blocks[k].aio_lio_opcode = IOCB_CMD_PWRITE;
      blocks[k].aio_fildes = static_cast<std::uint32_t>(fd_);
      blocks[k].aio_buf = reinterpret_cast<std::uintptr_t>(bytes_.get() + k * size);
      blocks[k].aio_nbytes = size;
      blocks[k].aio_offset = static_cast<std::int64_t>(slots[k] * size);
      list[k] = &blocks[k];
    }
    const auto wanted = static_cast<long>(count);
    if (::syscall(SYS_io_submit, context_, wanted, list) != wanted ||
        ::syscall(SYS_io_getevents, context_, wanted, wanted, events, nullptr) != wanted) {
      fail("asynchronous writes");
      return false;
    }
    for (std::size_t k = 0; k < count; ++k) {
      if (events[k].res != static_cast<std::int64_t>(size)) {
        fail("an asynchronous write", static_cast<int>(-events[k].res));
        return false;
      }
    }
    return true;
  }

  aio_context_t context_ = 0;
  unsigned char* map_ = nullptr;
  Pages bytes_;
};

/// Appends records.
class Appender : public Actor {
 public:
  using Actor::Actor;

  void run() override {
    Progress& progress = shared_.appenders[turn_];
    unsigned char record[kRecord];
    for (int round = 0; round < task_.rounds && !shared_.stop; ++round) {
      if ((fd_ < 0 || is("-reopen")) && !open(O_APPEND | (is("writeonly") ? O_WRONLY : O_RDWR))) break;
      fill(record, kRecord, appender_owner(turn_), ++progress.begun);
      if (::write(fd_, record, kRecord) != static_cast<ssize_t>(kRecord)) return fail("append");
      progress.acknowledged = progress.begun.load();
    }
    if (fd_ >= 0 && ::fsync(fd_) != 0) fail("fsync");
    progress.durable = progress.acknowledged.load();
    --shared_.writers;
  }
};

}  // namespace coherent
