// cframe diff: compares the uncompressed content of two files.
#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "frame/cframe/b2nd_meta.h"
#include "tools/cframe/cframe.h"
#include "tools/cframe/plain_content.h"
#include "tools/lib/piece_queue.h"
#include "tools/lib/progress.h"

namespace cframefs::tools {

using codec::Result;

namespace {

constexpr std::size_t kQueueBytes = std::size_t{16} << 20;

struct DiffOptions {
  std::string a;
  std::string b;
  frame::ArrayForm b2nd = frame::ArrayForm::npy;
  bool as_json = false;
  bool quiet = false;
  unsigned workers = 0;
};

struct Difference {
  std::optional<std::uint64_t> first;  // offset of the first byte that differs
  std::uint64_t count = 0;             // bytes that differ, of those that both files have
};

/// Compares two streams of equal length. One thread decodes the first, the calling thread decodes the second.
class Comparison {
 public:
  Comparison(const PlainContent& a, const PlainContent& b, const DiffOptions& options, Io& io)
      : a_(a),
        b_(b),
        options_(options),
        io_(io),
        progress_(io, "comparing", Progress::Unit::bytes),
        length_(std::min(a.size(), b.size())) {}

  /// Returns the difference. Errors have the path of the file that could not be read.
  Result<Difference> run() {
    if (length_ == 0) return found_;
    const unsigned workers = options_.workers == 0 ? available_workers() : options_.workers;
    Result<void> first;
    std::thread reader([&] {
      const Sink sink = [this](codec::ByteView bytes) -> Result<void> {
        if (queue_.push(bytes)) return {};
        return codec::io_error(ECANCELED, "compare");
      };
      first = a_.stream(0, length_, workers, sink, io_.stop);
      queue_.close();
    });
    const Sink sink = [this](codec::ByteView bytes) { return take(bytes); };
    const auto second = b_.stream(0, length_, workers, sink, io_.stop);
    queue_.close();
    reader.join();
    progress_.finish();
    if (is_decided()) return found_;
    if (!first && first.error().sys != ECANCELED) return codec::Failure(with_path(first.error(), a_.name()));
    if (!second) return codec::Failure(with_path(second.error(), b_.name()));
    return found_;
  }

 private:
  bool is_decided() const { return options_.quiet && found_.first; }

  Result<void> take(codec::ByteView bytes) {
    while (!bytes.empty()) {
      if (used_ == piece_.size()) {
        piece_ = queue_.pop();
        used_ = 0;
      }
      // The first file could not be read.
      if (piece_.empty()) return codec::io_error(ECANCELED, "compare");
      const std::size_t length = std::min(bytes.size(), piece_.size() - used_);
      compare(codec::ByteView(piece_).subspan(used_, length), bytes.first(length));
      if (is_decided()) return codec::io_error(ECANCELED, "compare");
      used_ += length;
      at_ += length;
      bytes = bytes.subspan(length);
      progress_.update(at_, length_);
    }
    return {};
  }

  void compare(codec::ByteView a, codec::ByteView b) {
    const auto mismatch = std::mismatch(a.begin(), a.end(), b.begin());
    if (mismatch.first == a.end()) return;
    const auto same = static_cast<std::size_t>(mismatch.first - a.begin());
    if (!found_.first) found_.first = at_ + same;
    for (std::size_t i = same; i < a.size(); ++i)
      found_.count += a[i] != b[i] ? 1U : 0U;
  }

  const PlainContent& a_;
  const PlainContent& b_;
  const DiffOptions& options_;
  Io& io_;
  Progress progress_;
  const std::uint64_t length_;
  PieceQueue queue_{kQueueBytes};
  std::vector<std::uint8_t> piece_;  // of the first file
  std::size_t used_ = 0;             // bytes of piece_ that were compared
  std::uint64_t at_ = 0;
  Difference found_;
};

/// Returns the index of the item at a byte of two arrays of one shape and type; none for other content.
std::optional<std::vector<std::uint64_t>> item_at(const PlainContent& a, const PlainContent& b, std::uint64_t at) {
  if (a.container() == nullptr || b.container() == nullptr || at < a.head_size()) return std::nullopt;
  const auto one = frame::b2nd_meta_of(*a.container());
  const auto other = frame::b2nd_meta_of(*b.container());
  if (!one || !*one || !other || !*other || (*one)->shape != (*other)->shape || a.size() != b.size())
    return std::nullopt;
  const auto typesize = static_cast<std::uint64_t>(std::max(a.container()->parameters().typesize, 1));
  std::uint64_t item = (at - a.head_size()) / typesize;
  std::vector<std::uint64_t> index((*one)->shape.size());
  for (std::size_t dimension = index.size(); dimension-- > 0;) {
    const auto length = static_cast<std::uint64_t>(std::max<std::int64_t>((*one)->shape[dimension], 1));
    index[dimension] = item % length;
    item /= length;
  }
  return index;
}

int run_diff(const DiffOptions& options, Io& io) {
  if (options.a == kStandardStream && options.b == kStandardStream)
    return report(io, codec::invalid("only one of the two files can be standard input").value());
  const auto a = PlainContent::open(options.a, options.b2nd, io);
  if (!a) return report_failure(io, a.error(), options.a);
  const auto b = PlainContent::open(options.b, options.b2nd, io);
  if (!b) return report_failure(io, b.error(), options.b);
  auto found = Comparison(*a, *b, options, io).run();
  if (io.stop.load()) return interrupted;
  if (!found) return report(io, found.error());
  const std::uint64_t length = std::min(a->size(), b->size());
  const bool has_end = a->size() != b->size();
  if (!found->first && has_end) found->first = length;
  const bool is_same = !found->first;
  const auto item = is_same ? std::nullopt : item_at(*a, *b, *found->first);
  int status = is_same ? done : kDataError;
  if (options.as_json) {
    nlohmann::json shown = {{"a", a->name()}, {"b", b->name()}, {"same", is_same}, {"sizes", {a->size(), b->size()}}};
    shown["first"] = is_same ? nlohmann::json() : nlohmann::json(*found->first);
    if (!options.quiet) shown["different"] = found->count;
    if (item) shown["item"] = *item;
    return std::max<int>(status, emit(io, shown.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n"));
  }
  if (is_same || options.quiet) return status;
  std::string text = printable(a->name()) + " and " + printable(b->name()) + " differ: ";
  text += found->count == 0 ? "one is the beginning of the other" : fmt::format("first at byte {}", *found->first);
  if (item) text += ", item " + nlohmann::json(*item).dump();
  if (found->count > 0) text += fmt::format("; {} of {} bytes differ", found->count, length);
  if (has_end) text += fmt::format("; lengths {} and {}", a->size(), b->size());
  return std::max<int>(status, emit(io, text + "\n"));
}

}  // namespace

SubcommandRun declare_diff(CLI::App& app) {
  auto options = std::make_shared<DiffOptions>();
  app.add_option("A", options->a, "Frame or any other file, or - for standard input")->required()->type_name("");
  app.add_option("B", options->b, "Frame or any other file, or - for standard input")->required()->type_name("");
  add_array_form_option(app, options->b2nd);
  app.add_flag("--json", options->as_json, "Print JSON");
  app.add_flag("-q,--quiet", options->quiet, "Print nothing, and stop at the first difference");
  app.add_option("--workers", options->workers, "Decoding threads for each file (one per CPU)")
      ->check(CLI::Range(1, 1024))
      ->type_name("N");
  return [options](Io& io) { return run_diff(*options, io); };
}

}  // namespace cframefs::tools
