// Checks the answer of a server to a request for one range of an object.
//
// Servers ignore ranges, serve other ranges than asked, answer with several parts, or serve another state of the
// object. Only an answer that tells the exact range, the total length and the expected state is used.
//
// Thread safety: pure functions. Ownership: a checked range is a view of the answer's body. Errors: stale for another
// state or length than expected; unsupported from a server that cannot serve ranges; io EIO for an answer that
// contradicts the request or itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "codec/base/bytes.h"
#include "codec/base/error.h"
#include "frame/remote/http/byte_range.h"
#include "frame/remote/http/http.h"
#include "frame/remote/objects/object_state.h"

namespace cframefs::frame {

/// The longest object that a server may send whole in answer to a request for a range.
constexpr std::uint64_t kMostWholeAnswer = 1U << 20;
constexpr std::uint64_t kMostObjectBytes = (std::uint64_t{1} << 63) - 1;

/// What a request asks for: "bytes=BEGIN-LAST", cut at the end of the object, or "bytes=-COUNT", the last bytes.
struct AskedRange {
  ByteRange range;           // not empty; ignored for a suffix
  std::uint64_t suffix = 0;  // 0: no suffix

  static AskedRange of(ByteRange range) { return {range, 0}; }
  static AskedRange last(std::uint64_t count) { return {{}, count}; }
};

struct CheckedRange {
  enum class Form : std::uint8_t {
    as_asked,
    whole,         // the server ignores ranges; the asked range is cut out of the object
    wrong_suffix,  // the server answers a suffix with another range: there are no bytes
    empty_object,  // the object has no bytes, so no range of it exists
  };
  Form form = Form::as_asked;
  ByteRange range;        // of the object
  codec::ByteView bytes;  // of `range`
  codec::ByteView whole;  // all bytes of the object, if the form is whole
  ObjectState state;      // told by the answer
};

/// Returns the value of the header Range.
std::string range_header(const AskedRange& asked);

/// Completes a request for a range: asks for no encoding, and bounds the body.
void ask_for(const AskedRange& asked, HttpRequest& request);

/// Returns true if both are the same state: equal lengths and equal tags; without tags, equal dates.
bool is_same_state(const ObjectState& one, const ObjectState& other);

/// Checks an answer. `expected`: the state of the object, or nullptr if any state will do.
Result<CheckedRange> check_range_answer(const HttpAnswer& answer, const AskedRange& asked, const ObjectState* expected);

}  // namespace cframefs::frame
