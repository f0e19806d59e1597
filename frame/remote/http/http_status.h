// What the status of an answer means: an error for users, or a reason to ask again.
//
// An error tells the address, the status, its words, and of an answer of S3 the Code and the Message, as far as they
// are printable and short. It tells no user, password, query or anything in a message that looks like a key.
//
// Thread safety: functions only. Errors: the table of failure_of().
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "codec/base/error.h"
#include "frame/remote/http/http.h"

namespace cframefs::frame {

/// Returns the address for messages: without user, password, query and fragment, printable, not longer than a line.
std::string shown_url(std::string_view url);

/// Returns the error that a status other than 2xx and 304 means:
///   404, 410              io ENOENT; no other status is ever ENOENT
///   401, 403              io EACCES, also 400 with a code of S3 that means an expired or invalid token
///   412, 416              stale, also 409 with the code ConditionalRequestConflict of S3
///   301, 307, 400 of S3   io EINVAL if the answer names the region of the bucket
///   413, 501, 507         io EFBIG, EOPNOTSUPP, ENOSPC
///   all others            io EIO
codec::Failure failure_of(const HttpAnswer& answer, const std::string& url);

/// Returns the element Code of an error of S3; empty if the body is none.
std::string error_code_of(const HttpAnswer& answer);

/// Returns whether the same request may succeed later: 408, 429, 500, 502, 503 and 504.
bool is_retried(int status);
/// The same, and 400 with the code RequestTimeout, by which S3 ends an upload that has stalled.
bool is_retried(const HttpAnswer& answer);

/// Returns how long the server asks to wait (Retry-After, seconds or a date, which is compared with Date), at most 60
/// s.
std::optional<std::chrono::seconds> retry_after(const HttpAnswer& answer);

}  // namespace cframefs::frame
