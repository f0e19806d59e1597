// What servers answer to a request for a range, and the texts of which credentials are made.
//
// As an answer the input is a line "STATUS BEGIN END" (what is asked for; BEGIN of "-": the last END bytes), headers,
// an empty line, and the body. Every text parser gets the whole input, too.
#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "frame/remote/access/credential_answers.h"
#include "frame/remote/access/ini_file.h"
#include "frame/remote/access/netrc.h"
#include "frame/remote/http/http_date.h"
#include "frame/remote/http/http_status.h"
#include "frame/remote/objects/object_tie.h"
#include "frame/remote/objects/range_answer.h"
#include "tests/fuzz/fuzz_check.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

using namespace cframefs;

const std::string kUrl = "http://host/a%20b?c=d";

bool is_one_line(std::string_view text) {
  return text.find_first_of(std::string_view("\r\n\0", 3)) == std::string_view::npos;
}

std::string_view take_until(std::string_view& text, char end) {
  const std::size_t at = text.find(end);
  const std::string_view taken = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
  return taken;
}

std::uint64_t number_of(std::string_view text) {
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return std::min(value, frame::kMostObjectBytes);
}

struct Exchange {
  frame::AskedRange asked;
  frame::HttpAnswer answer;
};

/// Headers of an answer have no line ends: the transport sees to that.
Exchange exchange_of(std::string_view text) {
  Exchange exchange;
  std::string_view first = take_until(text, '\n');
  exchange.answer.status = static_cast<int>(number_of(take_until(first, ' ')) % 1000);
  const std::string_view begin = take_until(first, ' ');
  const std::uint64_t end = std::max<std::uint64_t>(number_of(first), 1);
  exchange.asked =
      begin == "-" ? frame::AskedRange::last(end) : frame::AskedRange::of({std::min(number_of(begin), end - 1), end});
  while (!text.empty()) {
    std::string_view line = take_until(text, '\n');
    if (line.empty()) break;
    const std::string name(take_until(line, ':'));
    exchange.answer.headers.push_back(
        {name, std::string(line.substr(std::min(line.find_first_not_of(' '), line.size())))});
  }
  exchange.answer.body.assign(text.begin(), text.end());
  return exchange;
}

void check_request(const frame::HttpRequest& request) {
  FUZZ_CHECK(is_one_line(request.url));
  for (const frame::HttpHeader& header : request.headers)
    FUZZ_CHECK(is_one_line(header.value));
}

/// Checks what a range that is used promises: it is the asked one, and within the object.
void check_used(const Exchange& exchange, const frame::CheckedRange& checked) {
  using Form = frame::CheckedRange::Form;
  FUZZ_CHECK(checked.state.length <= frame::kMostObjectBytes);
  FUZZ_CHECK(is_one_line(checked.state.entity_tag) && is_one_line(checked.state.version_id));
  if (checked.form == Form::wrong_suffix || checked.form == Form::empty_object) {
    FUZZ_CHECK(checked.bytes.empty());
    return;
  }
  FUZZ_CHECK(checked.bytes.size() == checked.range.size() && !checked.bytes.empty());
  FUZZ_CHECK(checked.range.end <= checked.state.length);
  FUZZ_CHECK(checked.form == Form::whole || exchange.answer.status == 206);
  if (exchange.asked.suffix != 0) {
    FUZZ_CHECK(checked.range.end == checked.state.length && checked.range.size() <= exchange.asked.suffix);
  } else {
    FUZZ_CHECK(checked.range == frame::common_part(exchange.asked.range, {0, checked.state.length}));
  }
}

/// Reads the range again, tied to a state that the answer has told, and to another one.
void read_tied(const Exchange& exchange, const frame::CheckedRange& checked) {
  const auto same = frame::check_range_answer(exchange.answer, exchange.asked, &checked.state);
  FUZZ_CHECK(same && same->form == checked.form && same->range == checked.range);
  frame::ObjectState other = checked.state;
  other.length ^= 1U;
  const auto changed = frame::check_range_answer(exchange.answer, exchange.asked, &other);
  FUZZ_CHECK(!changed && changed.error().kind == codec::ErrorKind::stale);
  static_cast<void>(frame::version_of(kUrl, checked.state));
  if (checked.bytes.empty()) return;

  const auto tie = std::make_shared<frame::ObjectTie>(kUrl, checked.state);
  const auto tied = frame::ObjectTie::request_for(tie, checked.range);
  check_request(tied.request);
  const codec::Result<frame::HttpAnswer> answer = exchange.answer;
  const auto bytes = tied.check(answer);
  FUZZ_CHECK(!bytes || bytes->size() == checked.range.size());
  check_request(frame::ObjectTie::request_for(tie, checked.range).request);
}

void read_answer(const Exchange& exchange) {
  FUZZ_CHECK(is_one_line(frame::range_header(exchange.asked)));
  if (const auto checked = frame::check_range_answer(exchange.answer, exchange.asked, nullptr)) {
    check_used(exchange, *checked);
    read_tied(exchange, *checked);
  }
  const codec::Error failure = frame::failure_of(exchange.answer, kUrl).value();
  FUZZ_CHECK(is_one_line(failure.reason));
  FUZZ_CHECK(!codec::is_missing(failure) || exchange.answer.status == 404 || exchange.answer.status == 410);
  static_cast<void>(frame::is_retried(exchange.answer));
  const auto pause = frame::retry_after(exchange.answer);
  FUZZ_CHECK(!pause || (pause->count() >= 0 && pause->count() <= 60));
}

void check_credentials(const codec::Result<frame::Credentials>& credentials) {
  if (!credentials) {
    FUZZ_CHECK(is_one_line(credentials.error().reason));
    return;
  }
  const auto checked = frame::checked_credentials(*credentials, "a service");
  if (!checked) return;
  for (const std::string& text : {checked->key_id, checked->secret, checked->session_token})
    FUZZ_CHECK(is_one_line(text));
}

void read_texts(std::string_view text) {
  if (const auto seconds = frame::parse_http_date(text)) FUZZ_CHECK(frame::http_date(*seconds) == text);
  static_cast<void>(frame::parse_time(text));
  check_credentials(frame::credentials_of_json(text, "a service"));
  check_credentials(frame::credentials_of_sts(text, "a service"));
  FUZZ_CHECK(is_one_line(frame::error_code_of_sts(text)));
  FUZZ_CHECK(is_one_line(frame::shown_url(text)));
  if (const auto file = frame::IniFile::parse(text)) static_cast<void>(file->section("default"));
  const auto entry = frame::find_netrc_entry(text, "host", "");
  FUZZ_CHECK(!entry || !*entry || (*entry)->login.size() + (*entry)->password.size() <= text.size());
}

}  // namespace

FUZZ_TARGET(answer)(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  read_answer(exchange_of(text));
  read_texts(text);
  return 0;
}
