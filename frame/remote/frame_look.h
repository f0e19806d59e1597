// What a look-up reads of an object to tell the kind and the size of the file that a mount shows: the header of a
// frame, and of an array or a file of another format what its size depends on.
//
// Thread safety: functions only. Errors: io, of the source. A damaged container is none: a mount finds the damage in
// the same bytes.
#pragma once

#include <string>

#include "frame/io/byte_source.h"

namespace cframefs::frame {

/// Returns whether a look-up reads objects of this name.
bool is_looked_at(const std::string& name);

/// Reads from `source` what a look-up of the object reads.
Result<void> read_as_look_up(const std::shared_ptr<const ByteSource>& source, const std::string& name);

}  // namespace cframefs::frame
