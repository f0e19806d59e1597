#include "frame/remote/objects/range_answer.h"

#include <algorithm>
#include <cerrno>
#include <string_view>

#include <fmt/core.h>

#include "frame/base/utf8_sanitize.h"
#include "frame/remote/http/request_headers.h"

namespace cframefs::frame {
namespace {

constexpr std::size_t kMostShown = 100;

std::string_view trimmed_value(std::string_view text) {
  constexpr std::string_view kBlanks = " \t";
  const std::size_t begin = text.find_first_not_of(kBlanks);
  return begin == std::string_view::npos ? std::string_view()
                                         : text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

std::string shown_header(std::string_view value) {
  return printable(value.substr(0, kMostShown));
}

codec::Failure wrong_answer(const std::string& why) {
  return codec::io_error(EIO, "read a range", why);
}

/// Returns the value of digits only, at most 2^63-1.
std::optional<std::uint64_t> length_value(std::string_view digits) {
  constexpr std::size_t kMostDigits = 19;
  if (digits.empty() || digits.size() > kMostDigits) return std::nullopt;
  std::uint64_t value = 0;
  for (const char c : digits) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return value <= kMostObjectBytes ? std::optional(value) : std::nullopt;
}

/// The value of Content-Range.
struct ToldRange {
  std::optional<ByteRange> range;  // none: '*'
  std::optional<std::uint64_t> total;
};

std::optional<ToldRange> parse_content_range(std::string_view text) {
  text = trimmed_value(text);
  constexpr std::string_view kUnit = "bytes";
  if (text.size() <= kUnit.size() || !equal_without_case(text.substr(0, kUnit.size()), kUnit)) return std::nullopt;
  if (text[kUnit.size()] != ' ') return std::nullopt;
  text.remove_prefix(kUnit.size() + 1);
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  ToldRange told;
  if (text.substr(slash + 1) != "*") {
    told.total = length_value(text.substr(slash + 1));
    if (!told.total) return std::nullopt;
  }
  const std::string_view range = text.substr(0, slash);
  if (range == "*") return told;
  const std::size_t dash = range.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto first = length_value(range.substr(0, dash));
  const auto last = length_value(range.substr(dash + 1));
  if (!first || !last || *last < *first) return std::nullopt;
  told.range = ByteRange{*first, *last + 1};
  return told;
}

Result<void> check_encoding(const HttpAnswer& answer) {
  const std::string_view encoding = trimmed_value(answer.header("Content-Encoding"));
  if (encoding.empty() || equal_without_case(encoding, "identity")) return {};
  return codec::unsupported(
      fmt::format("the server sends the object in the encoding \"{}\"; only stored bytes can be read by ranges",
                  shown_header(encoding)));
}

/// Two headers that differ leave open which of them the body follows.
Result<void> check_single(const HttpAnswer& answer, std::string_view lower_name) {
  const HttpHeader* seen = nullptr;
  for (const HttpHeader& header : answer.headers) {
    if (!equal_without_case(header.name, lower_name)) continue;
    if (seen != nullptr && seen->value != header.value) {
      return wrong_answer(fmt::format(R"(the answer has two headers {}: "{}" and "{}")", lower_name,
                                      shown_header(seen->value), shown_header(header.value)));
    }
    seen = &header;
  }
  return {};
}

/// Checks the length of the body that the answer tells, if it tells one.
Result<void> check_body_length(const HttpAnswer& answer) {
  const std::string_view text = trimmed_value(answer.header("Content-Length"));
  if (text.empty()) return {};
  const auto told = length_value(text);
  if (told && *told == answer.body.size()) return {};
  return wrong_answer(
      fmt::format("the answer tells a length of \"{}\", but has {} bytes", shown_header(text), answer.body.size()));
}

Result<void> check_state(const ObjectState& told, const ObjectState* expected) {
  if (expected == nullptr) return {};
  if (told.length != expected->length) {
    return codec::stale(
        fmt::format("the object has {} bytes now, but had {} when it was opened", told.length, expected->length));
  }
  if (!expected->entity_tag.empty()) {
    if (told.entity_tag == expected->entity_tag) return {};
    const std::string now = told.entity_tag.empty() ? "no strong entity tag" : "the entity tag " + told.entity_tag;
    return codec::stale(fmt::format("the object has {} now, but had {} when it was opened", shown_header(now),
                                    shown_header(expected->entity_tag)));
  }
  if (!expected->version_id.empty() && told.version_id != expected->version_id) {
    return codec::stale("the server answers with another version of the object than the opened one");
  }
  if (expected->last_modified != 0 && told.last_modified != expected->last_modified) {
    return codec::stale(fmt::format("the object was modified at {} s, but at {} s when it was opened",
                                    told.last_modified, expected->last_modified));
  }
  return {};
}

std::optional<ByteRange> range_of(const AskedRange& asked, std::uint64_t total) {
  if (asked.suffix != 0) return ByteRange{total - std::min(asked.suffix, total), total};
  if (asked.range.begin >= total) return std::nullopt;
  return common_part(asked.range, {0, total});
}

Result<CheckedRange> check_whole(const HttpAnswer& answer, const AskedRange& asked, const ObjectState* expected) {
  if (answer.body.size() > kMostWholeAnswer) {
    return codec::unsupported(
        fmt::format("the server ignores ranges: it sends {} bytes instead of a range, at most {} are read",
                    answer.body.size(), kMostWholeAnswer));
  }
  if (trimmed_value(answer.header("Content-Length")).empty()) {
    return codec::unsupported("the server ignores ranges, and tells no length of the object");
  }
  CheckedRange checked;
  checked.state = state_of(answer);
  checked.state.length = answer.body.size();
  if (auto same = check_state(checked.state, expected); !same) return codec::Failure(same.error());
  checked.whole = answer.body;
  checked.form = answer.body.empty() ? CheckedRange::Form::empty_object : CheckedRange::Form::whole;
  if (answer.body.empty()) return checked;
  const auto range = range_of(asked, answer.body.size());
  if (!range) {
    return wrong_answer(fmt::format("the object ends at byte {}, before the asked range", answer.body.size()));
  }
  checked.range = *range;
  checked.bytes = checked.whole.subspan(range->begin, range->size());
  return checked;
}

Result<CheckedRange> check_partial(const HttpAnswer& answer, const AskedRange& asked, const ObjectState* expected) {
  const std::string_view type = trimmed_value(answer.header("Content-Type"));
  if (equal_without_case(type.substr(0, type.find_first_of("; \t")), "multipart/byteranges")) {
    return codec::unsupported("the server answers a request for one range with several parts");
  }
  const std::string_view text = answer.header("Content-Range");
  const auto told = parse_content_range(text);
  if (!told || !told->range) {
    return wrong_answer(fmt::format("the answer has the status 206, but the Content-Range \"{}\"", shown_header(text)));
  }
  if (!told->total) {
    return codec::unsupported(
        fmt::format("the server does not tell the length of the object (Content-Range \"{}\")", shown_header(text)));
  }
  CheckedRange checked;
  checked.state = state_of(answer);
  checked.state.length = *told->total;
  if (auto same = check_state(checked.state, expected); !same) return codec::Failure(same.error());
  const auto range = range_of(asked, *told->total);
  if (!range || *range != *told->range) {
    if (asked.suffix != 0 && *told->total != 0) {
      checked.form = CheckedRange::Form::wrong_suffix;
      return checked;
    }
    return wrong_answer(fmt::format(R"(asked for "{}", the server answers with the range "{}")", range_header(asked),
                                    shown_header(text)));
  }
  if (answer.body.size() != range->size()) {
    return wrong_answer(
        fmt::format("the answer has {} bytes, but tells the range \"{}\"", answer.body.size(), shown_header(text)));
  }
  checked.range = *range;
  checked.bytes = answer.body;
  return checked;
}

/// Status 416: no part of the range exists.
Result<CheckedRange> check_unsatisfied(const HttpAnswer& answer, const ObjectState* expected) {
  const std::string_view text = answer.header("Content-Range");
  const auto told = parse_content_range(text);
  const bool is_empty = told && !told->range && told->total == std::uint64_t{0};
  if (is_empty && (expected == nullptr || expected->length == 0)) {
    CheckedRange checked;
    checked.form = CheckedRange::Form::empty_object;
    checked.state = expected == nullptr ? state_of(answer) : *expected;
    checked.state.length = 0;
    return checked;
  }
  if (expected != nullptr) {
    return codec::stale(
        fmt::format("the object no longer has the asked range (Content-Range \"{}\")", shown_header(text)));
  }
  return wrong_answer(fmt::format("the server refuses the range, with the Content-Range \"{}\"", shown_header(text)));
}

}  // namespace

std::string range_header(const AskedRange& asked) {
  if (asked.suffix != 0) return fmt::format("bytes=-{}", asked.suffix);
  return fmt::format("bytes={}-{}", asked.range.begin, asked.range.end - 1);
}

void ask_for(const AskedRange& asked, HttpRequest& request) {
  request.headers.push_back({"Range", range_header(asked)});
  request.headers.push_back({"Accept-Encoding", "identity"});
  request.most_body = std::max(asked.suffix != 0 ? asked.suffix : asked.range.size(), kMostWholeAnswer);
}

bool is_same_state(const ObjectState& one, const ObjectState& other) {
  return one.length == other.length && one.entity_tag == other.entity_tag &&
         (!one.entity_tag.empty() || one.last_modified == other.last_modified);
}

Result<CheckedRange> check_range_answer(const HttpAnswer& answer, const AskedRange& asked,
                                        const ObjectState* expected) {
  for (const std::string_view name :
       {"content-range", "content-length", "content-encoding", "etag", "last-modified", "x-amz-version-id"}) {
    if (auto single = check_single(answer, name); !single) return codec::Failure(single.error());
  }
  if (answer.status == 416) return check_unsatisfied(answer, expected);
  if (answer.status != 200 && answer.status != 206) {
    return codec::unsupported(
        fmt::format("the server answers a request for a range with the status {}", answer.status));
  }
  if (auto plain = check_encoding(answer); !plain) return codec::Failure(plain.error());
  if (auto whole = check_body_length(answer); !whole) return codec::Failure(whole.error());
  return answer.status == 200 ? check_whole(answer, asked, expected) : check_partial(answer, asked, expected);
}

}  // namespace cframefs::frame
