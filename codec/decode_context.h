// What a thread needs to decode: codec states and scratch memory, kept from one block to the next.
//
// A DecodeContext serves one thread at a time. A ContextPool is thread-safe and hands contexts out; its leases must not
// outlive it. Scratch memory is returned to the system by trim(), so that one huge block does not stay resident.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "codec/bytes.h"

namespace cframefs::codec {

class DecodeContext {
 public:
  DecodeContext();
  ~DecodeContext();
  DecodeContext(const DecodeContext&) = delete;
  DecodeContext& operator=(const DecodeContext&) = delete;

  /// Scratch memory of at least `size` bytes, contents unspecified; valid until the next call for the same slot.
  /// Slots are independent: stored (compressed bytes as read, for the caller; codec/ never touches it), streams (codec
  /// output before the filters), partial (a block of which the caller wants a part), reference (block 0 for delta).
  enum class Slot { stored, streams, partial, reference };
  ByteSpan scratch(Slot slot, std::size_t size);

  /// Gives back scratch memory beyond `keep` bytes per slot.
  void trim(std::size_t keep);

  /// Codec states of this thread; only codec/ looks inside.
  struct CodecStates;
  CodecStates& states() { return *states_; }

 private:
  struct Scratch;
  std::unique_ptr<Scratch> scratch_;
  std::unique_ptr<CodecStates> states_;
};

class ContextPool {
 public:
  class Lease {
   public:
    Lease(ContextPool& pool, std::unique_ptr<DecodeContext> context) : pool_(&pool), context_(std::move(context)) {}
    Lease(Lease&&) = default;
    Lease& operator=(Lease&&) = delete;
    ~Lease();
    DecodeContext& operator*() const { return *context_; }
    DecodeContext* operator->() const { return context_.get(); }

   private:
    ContextPool* pool_;
    std::unique_ptr<DecodeContext> context_;
  };

  /// `keep`: scratch bytes per slot that a context may hold while nobody uses it.
  explicit ContextPool(std::size_t keep = std::size_t{2} << 20) : keep_(keep) {}

  Lease acquire();

 private:
  friend class Lease;
  void release(std::unique_ptr<DecodeContext> context);

  const std::size_t keep_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<DecodeContext>> idle_;
};

}  // namespace cframefs::codec
