// The bytes of one member of a zip file: where they lie if it is stored, inflated on the way if it is deflated.
//
// Thread safety: functions; the sources as byte_source.h. Ownership: they share the zip file's source.
// Errors: unsupported (another method, encrypted); corruption; io passes through.
#pragma once

#include <memory>

#include "frame/io/byte_source.h"
#include "frame/store/inflated_source.h"
#include "frame/store/zip_directory.h"

namespace cframefs::frame {

/// Bytes [begin, begin + size) of `whole`, which has them.
std::unique_ptr<ByteSource> range_source(std::shared_ptr<const ByteSource> whole, FileOffset begin, std::uint64_t size);

/// To be kept and shared where the member is deflated: what was learnt of the stream stays with it.
Result<std::shared_ptr<const ByteSource>> open_zip_member(std::shared_ptr<const ByteSource> zip,
                                                          const ZipMember& member,
                                                          std::shared_ptr<InflateMemory> memory);

}  // namespace cframefs::frame
