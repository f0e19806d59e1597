// Opens one member of a zip file as a source: a range of the zip file if stored, an InflatedSource if deflated.
//
// Thread safety: functions; the sources as byte_source.h. Ownership: the sources share the zip file's source.
// Errors: unsupported (another method, encrypted); corruption; io passes through.
#pragma once

#include <memory>

#include "frame/io/byte_source.h"
#include "frame/store/inflated_source.h"
#include "frame/store/zip_directory.h"

namespace cframefs::frame {

/// Returns bytes [begin, begin + size) of `whole`. REQUIRES: `whole` has these bytes.
std::unique_ptr<ByteSource> range_source(std::shared_ptr<const ByteSource> whole, FileOffset begin, std::uint64_t size);

/// Opens a member. Callers should keep and share the source of a deflated member, because it holds restart points.
Result<std::shared_ptr<const ByteSource>> open_zip_member(std::shared_ptr<const ByteSource> zip,
                                                          const ZipMember& member,
                                                          std::shared_ptr<InflateMemory> memory);

}  // namespace cframefs::frame
