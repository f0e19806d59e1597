// The answers of a bucket that end in an object: the begin and the end of a multipart upload, which are XML.
//
// An answer is refused if it is longer than 64 KiB, declares a document type (and so could declare entities), or nests
// elements deeper than such an answer does.
//
// Thread safety: functions only. Ownership: values. Errors: unsupported for an answer that is not the expected one; io
// EIO for an error that the bucket tells with status 200, which it does when the upload cannot be completed after it
// has begun to answer.
#pragma once

#include <cstdint>
#include <string>

#include "frame/remote/http/http.h"

namespace cframefs::frame {

constexpr std::uint64_t kMostUploadAnswer = std::uint64_t{64} << 10;

/// Returns the identifier of the upload that CreateMultipartUpload has begun.
Result<std::string> upload_id_of(const HttpAnswer& answer);

/// Returns the entity tag of the object that CompleteMultipartUpload has made; empty if the answer tells none.
/// `url`: for messages.
Result<std::string> completed_tag_of(const HttpAnswer& answer, const std::string& url);

}  // namespace cframefs::frame
