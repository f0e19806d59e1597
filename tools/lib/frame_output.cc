#include "tools/lib/frame_output.h"

#include <cerrno>
#include <map>
#include <utility>

#include <malloc.h>

#include "codec/base/mutex.h"
#include "frame/base/utf8_sanitize.h"
#include "frame/remote/http/address.h"
#include "frame/remote/object_publisher.h"

namespace cframefs::tools {

using codec::Failure;
using codec::Result;

namespace {

/// Parts of an upload go back to the system once they are sent: without a fixed threshold malloc keeps blocks as large
/// as those that were freed before, in heaps with holes.
constexpr int kSmallestMapped = 4 << 20;

struct OpenBuckets {
  codec::Mutex mutex;
  std::map<std::string, std::unique_ptr<frame::ObjectPublisher>> by_name GUARDED_BY(mutex);
};

OpenBuckets& buckets() {
  static OpenBuckets open;
  return open;
}

/// Returns what writes to a bucket, which is opened once.
Result<frame::ObjectPublisher*> publisher_of(const std::string& bucket) {
  codec::MutexLock lock(buckets().mutex);
  auto& publisher = buckets().by_name[bucket];
  if (!publisher) {
    auto opened = frame::ObjectPublisher::open(bucket);
    if (!opened) return Failure(opened.error());
    publisher = std::move(*opened);
    mallopt(M_MMAP_THRESHOLD, kSmallestMapped);  // NOLINT(concurrency-mt-unsafe): glibc locks
  }
  return publisher.get();
}

/// Returns the error in the words of a file.
Failure at_address(codec::Error error, const std::string& address) {
  if (error.sys == EEXIST) error = codec::invalid("exists already; --force replaces it").value();
  if (error.path.empty()) error.path = frame::shown_address(address);
  return Failure(std::move(error));
}

Result<std::unique_ptr<frame::NewObject>> begin_object(const std::string& address, bool replace, std::uint64_t expected,
                                                       Io& io) {
  const auto parsed = frame::parse_address(address);
  if (!parsed) return Failure(parsed.error());
  if (parsed->scheme != frame::Address::Scheme::s3) {
    return codec::invalid("is on a web server, but only objects of buckets can be written: s3://BUCKET/KEY");
  }
  if (parsed->key.empty() || parsed->is_directory())
    return codec::invalid("names no object: s3://BUCKET/KEY; --to takes a bucket or a prefix");
  const auto publisher = publisher_of(parsed->bucket);
  if (!publisher) return Failure(publisher.error());
  frame::UploadOptions options;
  options.replace = replace;
  options.expected = expected;
  options.remedy = "; --force uploads without this promise";
  options.stop = &io.stop;
  options.left_behind = [&io, shown = parsed->shown()](codec::Error error) {
    error.path = shown;
    io.err.print("cframe: " + frame::printable(codec::describe(error)) + "\n");
  };
  return (*publisher)->begin(parsed->key, options);
}

}  // namespace

Result<FrameOutput> FrameOutput::create(const std::string& argument, bool replace, const FileTraits& like,
                                        std::uint64_t expected, Io& io) {
  FrameOutput made;
  if (frame::is_address(argument)) {
    auto object = begin_object(argument, replace, expected, io);
    if (!object) return at_address(object.error(), argument);
    made.object_ = std::move(*object);
    made.address_ = argument;
    made.target_ = made.object_.get();
    return made;
  }
  auto file = ResultFile::create(argument, replace, like, io);
  if (!file) return Failure(file.error());
  made.file_.emplace(std::move(*file));
  made.in_file_ = std::make_unique<frame::FileTarget>(frame::system_files(), made.file_->handle());
  made.target_ = made.in_file_.get();
  return made;
}

Result<void> FrameOutput::publish() {
  if (!object_) return file_->publish();
  auto published = object_->publish();
  if (!published) return at_address(published.error(), address_);
  return published;
}

void close_buckets() {
  codec::MutexLock lock(buckets().mutex);
  buckets().by_name.clear();
}

}  // namespace cframefs::tools
