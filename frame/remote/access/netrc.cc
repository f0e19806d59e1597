#include "frame/remote/access/netrc.h"

#include <algorithm>

#include "frame/remote/http/request_headers.h"

namespace cframefs::frame {

namespace {

using codec::Result;

/// The words of a netrc file, one after the other.
class NetrcWords {
 public:
  explicit NetrcWords(std::string_view text) : text_(text) {}

  /// Returns the next word, or nullopt at the end. corruption for a quotation mark without a partner.
  Result<std::optional<std::string>> next() {
    skip_blanks();
    if (at_ == text_.size()) return std::nullopt;
    if (text_[at_] == '"') return quoted();
    std::string word;
    while (at_ < text_.size() && !is_white(text_[at_]))
      word += text_[at_++];
    return std::optional<std::string>(std::move(word));
  }
  /// Skips the rest of a macro: to the next empty line.
  void skip_macro() {
    const std::size_t end = text_.find("\n\n", at_);
    const std::size_t to = end == std::string_view::npos ? text_.size() : end + 2;
    line_ += static_cast<std::size_t>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(at_),
                                                 text_.begin() + static_cast<std::ptrdiff_t>(to), '\n'));
    at_ = to;
  }
  codec::Failure damaged(const char* what) const {
    return codec::corrupt("netrc: line " + std::to_string(line_) + ": " + what);
  }

 private:
  static bool is_white(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

  /// Skips white space, and comments: lines that begin with '#'.
  void skip_blanks() {
    bool is_line_begin = at_ == 0 || text_[at_ - 1] == '\n';
    while (at_ < text_.size()) {
      if (text_[at_] == '#' && is_line_begin) {
        at_ = std::min(text_.find('\n', at_), text_.size());
        continue;
      }
      if (!is_white(text_[at_])) return;
      if (text_[at_] == '\n') {
        ++line_;
        is_line_begin = true;
      }
      ++at_;
    }
  }
  Result<std::optional<std::string>> quoted() {
    std::string word;
    for (++at_; at_ < text_.size() && text_[at_] != '\n'; ++at_) {
      if (text_[at_] == '"') {
        ++at_;
        return std::optional<std::string>(std::move(word));
      }
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
      word += text_[at_];
    }
    return damaged("a quotation mark without a partner");
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
};

/// Collects entries until one is the wanted one.
class NetrcSearch {
 public:
  NetrcSearch(std::string_view host, std::string_view login) : host_(host), login_(login) {}

  void begin_machine(std::string_view name) { begin(equal_without_case(name, host_), false); }
  void begin_default() { begin(true, true); }
  void set_login(std::string login) {
    entry_.login = std::move(login);
    has_login_ = true;
  }
  void set_password(std::string password) { entry_.password = std::move(password); }
  /// Ends an entry. Returns true if it is the wanted one.
  bool is_found() const {
    if (!is_of_host_) return false;
    return login_.empty() ? has_login_ || !entry_.password.empty() : entry_.login == login_;
  }
  NetrcEntry take() { return std::move(entry_); }

 private:
  void begin(bool is_of_host, bool is_default) {
    entry_ = NetrcEntry();
    entry_.is_default = is_default;
    is_of_host_ = is_of_host;
    has_login_ = false;
  }

  const std::string_view host_;
  const std::string_view login_;
  NetrcEntry entry_;
  bool is_of_host_ = false;
  bool has_login_ = false;
};

}  // namespace

Result<std::optional<NetrcEntry>> find_netrc_entry(std::string_view text, std::string_view host,
                                                   std::string_view login) {
  NetrcWords words(text);
  NetrcSearch search(host, login);
  while (true) {
    const auto word = words.next();
    if (!word) return codec::Failure(word.error());
    const bool ends_entry = !*word || **word == "machine" || **word == "default";
    if (ends_entry && search.is_found()) return std::optional<NetrcEntry>(search.take());
    if (!*word) return std::nullopt;
    if (**word == "default") {
      search.begin_default();
      continue;
    }
    auto value = words.next();
    if (!value) return codec::Failure(value.error());
    if (!*value) return words.damaged("a word without the value that belongs to it");
    if (**word == "machine") {
      search.begin_machine(**value);
    } else if (**word == "login") {
      search.set_login(std::move(**value));
    } else if (**word == "password") {
      search.set_password(std::move(**value));
    } else if (**word == "macdef") {
      words.skip_macro();
    } else if (**word != "account") {
      return words.damaged("a word that is none of machine, default, login, password, account and macdef");
    }
  }
}

}  // namespace cframefs::frame
