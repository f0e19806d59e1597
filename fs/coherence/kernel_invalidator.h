// Invalidation of what the kernel has cached, after a backing file has changed.
//
// Thread safety: called by several threads concurrently, which hold no lock; calls may block until requests in progress
// are answered. Ownership: none. Errors: none.
#pragma once

#include <cstdint>
#include <string>

#include "fs/kernel/notification_gate.h"
#include "fs/tree/node_table.h"

namespace cframefs::fs {

class KernelInvalidator {
 public:
  virtual ~KernelInvalidator() = default;
  /// Drops attributes and pages of a node. Does not wait for a directory.
  virtual void invalidate_inode(NodeId node) = 0;
  /// Drops attributes, and the pages that hold bytes [at, at + length); length: 1 or more.
  virtual void forget_range(NodeId node, std::uint64_t /*at*/, std::uint64_t /*length*/) { invalidate_inode(node); }
  virtual void invalidate_entry(NodeId parent, const std::string& name) = 0;
  /// Drops attributes only; waits for the gate, and for no request. Returns false if the kernel does not know the node.
  virtual bool forget_attributes(NodeId /*node*/) { return true; }
  /// Drops all names in all directories; never waits. Returns false if the kernel does not support it.
  virtual bool invalidate_all_entries() { return false; }

  /// Returns the gate that all notifications about nodes pass.
  NotificationGate& gate() { return gate_; }

 private:
  NotificationGate gate_;
};

}  // namespace cframefs::fs
