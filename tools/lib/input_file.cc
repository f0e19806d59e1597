#include "tools/lib/input_file.h"

#include <vector>

#include <fcntl.h>

#include "frame/remote/http/address.h"
#include "tools/lib/store_paths.h"
#include "tools/lib/temporary_file.h"

namespace cframefs::tools {

using codec::Failure;
using codec::Result;
using frame::Descriptor;

namespace {

constexpr std::size_t kCopyPiece = std::size_t{1} << 20;
constexpr const char* kSparseIndex = "chunks.b2frame";

Result<void> copy_all(Input& input, frame::FileOps& files, frame::OpenFile file) {
  std::vector<std::uint8_t> piece(kCopyPiece);
  for (std::uint64_t at = 0;;) {
    const auto got = input.read(piece);
    if (!got) return Failure(got.error());
    if (auto put = files.pwrite(file, codec::ByteView(piece).first(*got), frame::FileOffset{at}); !put) return put;
    if (*got < piece.size()) return {};
    at += *got;
  }
}

Result<struct stat> status_of_path(const std::string& path, int flags) {
  frame::FileOps& files = frame::system_files();
  const auto fd = files.open_named(path, O_PATH | flags);
  if (!fd) return Failure(fd.error());
  return files.status(Descriptor(files, *fd).handle());
}

bool is_same(const Result<struct stat>& a, const Result<struct stat>& b) {
  return a && b && a->st_ino == b->st_ino && a->st_dev == b->st_dev;
}

/// Returns the directory part of a path; "." for a name without one.
std::string directory_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

Result<Descriptor> open_to_read(const std::string& path) {
  frame::FileOps& files = frame::system_files();
  auto fd = files.open_named(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  // Another program has a lease on the file, and is given the time to let it go.
  if (!fd && fd.error().sys == EWOULDBLOCK) fd = files.open_named(path, O_RDONLY | O_NOCTTY);
  if (!fd) return Failure(fd.error());
  return Descriptor(files, *fd);
}

Result<void> InputFile::copy(Input& input) {
  frame::FileOps& files = frame::system_files();
  auto made = make_unnamed_file(files);
  if (!made) return Failure(made.error());
  if (auto copied = copy_all(input, files, made->handle()); !copied) return copied;
  path_ = "/proc/self/fd/" + std::to_string(files.system_descriptor(made->handle())->number);
  copy_ = std::make_shared<const Descriptor>(std::move(*made));
  return {};
}

Result<InputFile> InputFile::open(const std::string& argument, Io& io) {
  InputFile file(argument);
  const auto failed = [&file](codec::Error error) {
    if (error.path.empty()) error.path = file.name_;
    return Failure(std::move(error));
  };
  if (argument != kStandardStream) {
    const auto status = status_of_path(argument, 0);
    file.is_stream_ = status && S_ISFIFO(status->st_mode);
    if (!file.is_stream_) return file;
    const auto opened = open_to_read(argument);
    if (!opened) return failed(opened.error());
    DescriptorInput pipe(frame::system_files().system_descriptor(opened->handle())->number, io.stop);
    if (auto copied = file.copy(pipe); !copied) return failed(copied.error());
    return file;
  }
  file.is_stream_ = true;
  file.name_ = "standard input";
  if (io.in == nullptr) return failed(codec::invalid("is not available").value());
  frame::FileOps& files = frame::system_files();
  file.path_ = io.in->path();
  if (!file.path_.empty()) {
    // The user may lack the permission to open the file again: then copy it.
    if (const auto fd = files.open_named(file.path_, O_RDONLY)) {
      files.close(*fd);
      return file;
    }
  }
  if (auto copied = file.copy(*io.in); !copied) return failed(copied.error());
  return file;
}

FileTraits FileTraits::of(const struct stat& status) {
  return {status.st_mode & 0666, {status.st_atim, status.st_mtim}};
}

Result<FileTraits> traits_of(const std::string& path) {
  const auto found = files_for(path);
  if (!found) return Failure(found.error());
  frame::ReadFileOps& files = **found;
  const auto fd = files.open_named(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!fd) return Failure(fd.error());
  const Descriptor file(files, *fd);
  const auto status = files.status(file.handle());
  if (!status) return Failure(status.error());
  const auto index = S_ISDIR(status->st_mode) ? files.status_at(file.handle(), kSparseIndex) : status;
  FileTraits traits = FileTraits::of(index ? *index : *status);
  // The mode of an object says only that nothing can change it on its server.
  if (frame::is_address(path)) traits.mode = FileTraits().mode;
  return traits;
}

Result<void> check_no_overlap(const std::string& in, const std::string& out) {
  if (out == kStandardStream) return {};
  if (frame::is_address(out)) {
    if (in != out) return {};
    codec::Failure refused = codec::invalid("the output would replace the input");
    refused.value().path = frame::shown_address(out);
    return refused;
  }
  const auto taken = status_of_path(out, O_NOFOLLOW);
  // Compare with the input itself, and with each directory or store on its path.
  for (std::size_t end = in.find('/', 1);; end = in.find('/', end + 1)) {
    if (is_same(taken, status_of_path(in.substr(0, end), 0))) {
      codec::Failure refused = codec::invalid("the output would replace the input");
      refused.value().path = out;
      return refused;
    }
    if (end == std::string::npos) break;
  }
  const auto whole = status_of_path(in, 0);
  if (whole && S_ISDIR(whole->st_mode) && is_same(whole, status_of_path(directory_of(out), 0))) {
    codec::Failure refused = codec::invalid("is inside the sparse frame that is the input");
    refused.value().path = out;
    return refused;
  }
  return {};
}

}  // namespace cframefs::tools
