// A source that lies on a server: an object, or a directory of objects, of a web server or in a bucket.
//
// Thread safety: internally synchronised. Ownership: owns its connections, caches and threads. Errors: unsupported from
// a build without the option `remote`; invalid for an address or an option that is none; io.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "frame/io/file_ops.h"
#include "frame/remote/http/address.h"

namespace cframefs::frame {

struct RemoteOptions {
  std::string endpoint;                                // another S3 service; empty: AWS_ENDPOINT_URL, else that of AWS
  std::string region;                                  // empty: as the AWS tools find it
  std::string profile;                                 // of ~/.aws; empty: AWS_PROFILE, else "default"
  std::string token_file;                              // holds a bearer token for a web server; empty: none
  std::string ca_file;                                 // certificates that vouch for the server; empty: the system's
  std::string cache_dir;                               // directory of the disk cache; empty: none
  std::uint64_t cache_disk = std::uint64_t{10} << 30;  // bytes
  std::chrono::milliseconds ttl{60'000};               // how long attributes and listings are valid; 0: never
  std::chrono::milliseconds timeout{60'000};           // of a request with all its retries
  bool is_unsigned = false;                            // requests to a bucket carry no signature
  bool uses_index = true;                              // of a directory, if it has one; never with ttl 0
  std::function<void(const std::string&)> warn;        // takes warnings that are no errors; may be empty
};

struct RemoteConfinement;  // remote_confinement.h

/// The index of a directory, as RemoteSource::make_index() makes it.
struct MadeIndex {
  std::vector<std::uint8_t> stored;
  std::uint64_t objects = 0;
  std::uint64_t looked_at = 0;  // of these, objects whose first bytes the index has
  std::uint64_t left_out = 0;   // objects that are not in it
};

/// How a caller follows the making of an index.
struct IndexWork {
  /// Called some times a second, with the objects that were looked at and those found so far.
  std::function<void(std::uint64_t done, std::uint64_t total)> progress;
  const std::atomic<bool>* stop = nullptr;  // ends the work if it becomes true
};

class RemoteSource {
 public:
  virtual ~RemoteSource() = default;

  static Result<std::unique_ptr<RemoteSource>> open(const std::string& address, const RemoteOptions& options);

  /// Returns the tree of the source, read-only.
  virtual FileOps& files() = 0;
  /// Returns the path to pass to files().open_named(): the directory, or the one object.
  virtual std::string root() const = 0;
  /// Returns the address without user, password and query, for /proc/mounts and messages.
  virtual std::string shown_address() const = 0;
  /// Makes the index of the directory. invalid if the source is one object. Errors: those of IndexBuilder.
  virtual Result<MadeIndex> make_index(const IndexWork& work) = 0;
  /// Puts the index in its place, where it replaces an older one. REQUIRES: a bucket.
  virtual Result<void> put_index(const std::vector<std::uint8_t>& stored) = 0;
  /// Restricts the thread that talks to servers, and has others do what the process may not do from now on. Then no
  /// other thread of the source runs until the next request. REQUIRES: no other thread uses the source. Errors: those
  /// of RemoteConfinement::enter.
  virtual Result<void> confine(RemoteConfinement confinement) = 0;
  /// Ends all waiting reads with an error, for unmounting.
  virtual void stop() = 0;
};

}  // namespace cframefs::frame
