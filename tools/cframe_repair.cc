// cframe repair: cuts an unfinished commit off a frame; or saves what can be read of a damaged one into a new frame.
#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <optional>

#include <CLI/CLI.hpp>
#include <fcntl.h>

#include "codec/decode_context.h"
#include "frame/chunk_reader.h"
#include "frame/live_copy.h"
#include "frame/salvage.h"
#include "tools/cframe.h"
#include "tools/frame_changes.h"
#include "tools/sizes.h"

namespace cframefs::tools {

using codec::Result;
using codec::SpecialValue;
using frame::ChunkNumber;

namespace {

/// So many bytes of chunks wait in memory at most.
constexpr std::uint64_t kCommitBytes = std::uint64_t{64} << 20;

struct RepairOptions {
  std::string file;
  std::optional<std::string> out;
  double wait = 5;
  bool quiet = false;
};

/// The frame in place: only what lies behind it goes.
int cut_tail(const RepairOptions& options, Io& io) {
  auto opened = open_writer(options.file, options.wait);
  if (!opened) {
    const ExitStatus status = report(io, opened.error());
    if (status == data_at_fault) io.err.print("cframe: what can be read of it, 'cframe repair FILE OUT' saves\n");
    return status;
  }
  const auto cut = opened->writer->cut_tail();
  if (!cut) return report(io, with_path(cut.error(), options.file));
  if (options.quiet) return done;
  if (*cut == 0) return emit(io, printable(options.file) + ": nothing to repair\n");
  return emit(io, printable(options.file) + ": cut off " + human_size(*cut) + " of a commit that did not finish\n");
}

/// Copies into a new frame what can be read of another.
class Saver {
 public:
  Saver(const frame::FrameContainer& from, frame::FrameWriter& to, Io& io, const std::string& path)
      : from_(from), to_(to), io_(io), path_(path) {}

  Result<void> run() {
    // Whatever is not stored afterwards is zeros, as what is lost must be: the others keep their places.
    if (auto sized = to_.resize(from_.parameters().nbytes); !sized) return sized;
    for (std::int64_t chunk = 0; chunk < from_.chunk_count(); ++chunk) {
      if (io_.stop.load()) return codec::io_error(EINTR, "read");
      auto saved = save(chunk);
      if (!saved && saved.error().kind == codec::ErrorKind::io) return saved;
      if (!saved) lose(saved.error());
      if (to_.pending_bytes() > kCommitBytes) {
        if (auto done = to_.commit(frame::Durability::ordered); !done) return done;
      }
    }
    for (const std::string& name : from_.vlmetalayer_names()) {
      const auto content = from_.vlmetalayer(name);
      auto set = content ? to_.set_vlmetalayer(name, *content) : Result<void>(tl::unexpected(content.error()));
      if (!set) lose(set.error());
    }
    return to_.commit(frame::Durability::durable);
  }

  std::int64_t lost() const { return lost_; }

 private:
  void lose(const codec::Error& error) {
    ++lost_;
    report(io_, with_path(error, path_));
  }

  Result<void> save(std::int64_t chunk) {
    const auto place = from_.place(ChunkNumber{chunk});
    if (!place) return tl::unexpected(place.error());
    if (place->special == SpecialValue::zeros) return {};
    codec::EncodedChunk copy;
    copy.special = place->special;
    copy.nbytes = place->nbytes;
    if (copy.special != SpecialValue::none) return to_.store(ChunkNumber{chunk}, std::move(copy));
    const auto reader = frame::ChunkReader::open(from_, ChunkNumber{chunk});
    if (!reader) return tl::unexpected(reader.error());
    plain_.resize((*reader)->decoder().nbytes());
    if (auto decoded = frame::decode_whole(context_, **reader, plain_); !decoded) return decoded;
    const auto length = frame::stored_length(*place);
    if (!length) return tl::unexpected(length.error());
    copy.bytes.resize(static_cast<std::size_t>(*length));
    if (auto read = place->source->read(place->offset, copy.bytes); !read) return read;
    return to_.store(ChunkNumber{chunk}, std::move(copy));
  }

  const frame::FrameContainer& from_;
  frame::FrameWriter& to_;
  Io& io_;
  const std::string& path_;
  std::int64_t lost_ = 0;
  codec::DecodeContext context_;
  std::vector<std::uint8_t> plain_;
};

Result<frame::Salvage> open_salvage(const std::string& path) {
  frame::FileOps& files = frame::system_files();
  const auto fd = files.open_named(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!fd) return tl::unexpected(fd.error());
  const auto file = std::make_shared<const frame::Descriptor>(files, *fd);
  const auto status = files.status(*fd);
  if (!status) return tl::unexpected(status.error());
  if (!S_ISREG(status->st_mode)) return codec::unsupported("only contiguous frames are repaired");
  const auto size = static_cast<std::uint64_t>(status->st_size);
  return frame::open_damaged(frame::file_source(files, file, {}, size), std::make_shared<frame::IndexCache>());
}

/// The new frame's file: made when nothing else was there, removed unless it is kept.
class OutputFile {
 public:
  explicit OutputFile(std::string path) : path_(std::move(path)) {}
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile() {
    if (made_ && !kept_) static_cast<void>(files_.remove_at(folder_.fd(), name_, false));
  }

  /// An empty frame like the one to be saved.
  Result<void> make(const frame::FrameContainer& from) {
    const std::filesystem::path path(path_);
    name_ = path.filename().string();
    const auto folder = files_.open_named(path.has_parent_path() ? path.parent_path().string() : ".", O_RDONLY);
    if (!folder) return tl::unexpected(folder.error());
    folder_ = frame::Descriptor(files_, *folder);
    const auto fd = files_.create_at(*folder, name_, O_RDWR | O_EXCL, 0666);
    if (!fd && fd.error().sys == EEXIST) return codec::invalid("a file of this name is there already");
    if (!fd) return tl::unexpected(fd.error());
    made_ = true;
    const frame::Descriptor file(files_, *fd);
    frame::NewFrame like;
    like.encode = frame::encode_parameters(from.parameters());
    like.chunksize = from.parameters().chunksize;
    like.metalayers = from.metalayers();
    return files_.pwrite(file.fd(), frame::empty_frame(like), {});
  }
  void keep() { kept_ = true; }

 private:
  frame::FileOps& files_ = frame::system_files();
  const std::string path_;
  std::string name_;
  frame::Descriptor folder_;
  bool made_ = false;
  bool kept_ = false;
};

int save(const RepairOptions& options, Io& io) {
  const auto salvage = open_salvage(options.file);
  if (!salvage) return report(io, with_path(salvage.error(), options.file));
  for (const std::string& loss : salvage->losses)
    io.err.print("cframe: " + printable(options.file) + ": " + printable(loss) + "\n");
  const frame::FrameContainer& from = *salvage->container;
  if (from.parameters().variable_chunks) {
    return report(io, with_path(codec::unsupported("frame whose chunks vary in size").value(), options.file));
  }
  OutputFile output(*options.out);
  if (auto made = output.make(from); !made) return report(io, with_path(made.error(), *options.out));
  auto opened = open_writer(*options.out, options.wait);
  if (!opened) return report(io, opened.error());
  Saver saver(from, *opened->writer, io, options.file);
  auto saved = saver.run();
  if (!saved) {
    if (io.stop.load()) return interrupted;
    return report(io, with_path(saved.error(), *options.out));
  }
  output.keep();
  int status = salvage->losses.empty() && saver.lost() == 0 ? done : data_at_fault;
  if (!options.quiet) {
    status = std::max<int>(status, emit(io, printable(*options.out) + ": " + std::to_string(from.chunk_count()) +
                                                " chunks, " + std::to_string(saver.lost()) + " lost\n"));
  }
  return status;
}

}  // namespace

SubcommandRun declare_repair(CLI::App& app) {
  auto options = std::make_shared<RepairOptions>();
  app.add_option("FILE", options->file, "Contiguous frame")->required()->type_name("");
  app.add_option("OUT", options->out, "New frame for what can be read; FILE is left as it is")->type_name("");
  app.add_flag("-q,--quiet", options->quiet, "Print only what is lost");
  add_wait_option(app, options->wait);
  return [options](Io& io) { return options->out ? save(*options, io) : cut_tail(*options, io); };
}

}  // namespace cframefs::tools
