// What the kernel must be told to forget when a backing file has changed.
//
// Thread safety: the calls come from several threads at once, which hold no lock; they may block until requests under
// way are answered. Ownership: none. Errors: none.
#pragma once

#include <cstdint>
#include <string>

#include "fs/tree/node_table.h"

namespace cframefs::fs {

class KernelInvalidator {
 public:
  virtual ~KernelInvalidator() = default;
  /// Attributes and pages of a node; of a directory nothing that could make it wait.
  virtual void invalidate_inode(NodeId node) = 0;
  /// Attributes, and the pages that hold bytes [at, at + length); length: 1 or more.
  virtual void forget_range(NodeId node, std::uint64_t /*at*/, std::uint64_t /*length*/) { invalidate_inode(node); }
  virtual void invalidate_entry(NodeId parent, const std::string& name) = 0;
  /// Attributes alone; never waits.
  virtual void forget_attributes(NodeId /*node*/) {}
  /// All names, of every directory; never waits. False if that cannot be had.
  virtual bool invalidate_all_entries() { return false; }
};

}  // namespace cframefs::fs
