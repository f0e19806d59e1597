#include "frame/remote/remote_source.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <functional>
#include <optional>
#include <thread>
#include <utility>

#include <fcntl.h>

#include "frame/base/suffixes.h"
#include "frame/base/utf8_sanitize.h"
#include "frame/remote/access/authorizers.h"
#include "frame/remote/access/s3_service.h"
#include "frame/remote/access/service_credentials.h"
#include "frame/remote/access/system_surroundings.h"
#include "frame/remote/http/address.h"
#include "frame/remote/http/curl_transport.h"
#include "frame/remote/http/network_needs.h"
#include "frame/remote/http/percent_encoding.h"
#include "frame/remote/http/remote_requests.h"
#include "frame/remote/index_builder.h"
#include "frame/remote/listings/bucket_listing.h"
#include "frame/remote/listings/caching_listing.h"
#include "frame/remote/listings/indexed_listing.h"
#include "frame/remote/listings/listing_text.h"
#include "frame/remote/listings/one_directory_listing.h"
#include "frame/remote/listings/one_object_listing.h"
#include "frame/remote/listings/remote_files.h"
#include "frame/remote/listings/remote_heads.h"
#include "frame/remote/listings/web_listing.h"
#include "frame/remote/objects/disk_cache.h"
#include "frame/remote/remote_confinement.h"

namespace cframefs::frame {

namespace {

using codec::Failure;
using std::chrono::milliseconds;

/// The object that makes a directory a sparse frame.
constexpr const char* kSparseFrameIndex = "chunks.b2frame";

RequestPatience patience_of(milliseconds timeout) {
  constexpr milliseconds kLeastAttempt{1'000};
  constexpr milliseconds kMostAttempt{20'000};
  RequestPatience patience;
  patience.total = timeout;
  // Half of the time, so that a request that a server never answers is sent a second time.
  patience.attempt = std::clamp(timeout / 2, kLeastAttempt, kMostAttempt);
  return patience;
}

/// Sends requests with less patience until the source is open: a mistyped host must not hold up a command for long.
class OpeningRequests final : public Requests {
 public:
  OpeningRequests(HttpTransport& transport, Authorizer& authorizer, milliseconds timeout)
      : make_([&transport, &authorizer](milliseconds patience) {
          return std::make_unique<RemoteRequests>(transport, authorizer, patience_of(patience));
        }),
        timeout_(timeout),
        opening_(make_(std::min(timeout, kMostOpening))),
        serving_(make_(timeout)) {}

  std::future<Result<HttpAnswer>> start(HttpRequest request) override {
    return (is_open_ ? *serving_ : *opening_).start(std::move(request));
  }
  ServerCounts counts() const override {
    ServerCounts all = before_;
    add(all, serving_->counts());
    add(all, opening_->counts());
    return all;
  }
  void note_open() { is_open_ = true; }
  /// Waits for the answers to all requests, and ends the threads that serve them. The next request starts new ones.
  /// REQUIRES: no other thread uses this.
  void end_threads() {
    for (auto* const requests : {&opening_, &serving_}) {
      while (!(*requests)->is_idle())
        std::this_thread::sleep_for(milliseconds(1));
      add(before_, (*requests)->counts());
      *requests = make_(timeout_);
    }
  }
  void stop() {
    opening_->stop();
    serving_->stop();
  }

 private:
  static constexpr milliseconds kMostOpening{10'000};

  static void add(ServerCounts& all, const ServerCounts& more) {
    all.requests += more.requests;
    all.retries += more.retries;
    all.hedges += more.hedges;
    all.bytes += more.bytes;
  }

  const std::function<std::unique_ptr<RemoteRequests>(milliseconds)> make_;
  const milliseconds timeout_;
  std::unique_ptr<RemoteRequests> opening_;
  std::unique_ptr<RemoteRequests> serving_;
  ServerCounts before_;  // of requests before end_threads()
  std::atomic<bool> is_open_{false};
};

/// Returns the patience with which `bytes` are sent over a slow connection.
RequestPatience patience_of_upload(std::uint64_t bytes) {
  constexpr std::uint64_t kSlowest = 64 << 10;  // bytes in a second
  RequestPatience patience;
  patience.attempt = milliseconds(60'000) + std::chrono::seconds(bytes / kSlowest);
  patience.total = 2 * patience.attempt;
  return patience;
}

std::string last_name(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return std::string(slash == std::string_view::npos ? path : path.substr(slash + 1));
}

/// What a source on a server shows: a directory, or one object.
struct ServerTree {
  std::unique_ptr<Listing> listing;
  std::string root = "/";
};

/// How an address is reached: what authorizes requests, and for a bucket its service.
struct ServerAccess {
  std::unique_ptr<Authorizer> authorizer;  // nullptr: none
  std::optional<S3Service> service;
};

Result<ServerAccess> access_of(const Address& address, const RemoteOptions& options, const Surroundings& surroundings,
                               HttpTransport& transport) {
  ServerAccess access;
  if (address.scheme != Address::Scheme::s3) {
    auto authorizer = web_authorizer(address, options.token_file, surroundings);
    if (!authorizer) return Failure(authorizer.error());
    access.authorizer = std::move(*authorizer);
    return access;
  }
  auto service = S3Service::find(address.bucket, {options.endpoint, options.region, options.profile}, surroundings);
  if (!service) return Failure(service.error());
  access.service = std::move(*service);
  if (!options.is_unsigned) {
    access.authorizer = std::make_unique<S3Authorizer>(surroundings, transport, access.service->origin(),
                                                       CredentialChoice{options.profile, access.service->region()});
  }
  return access;
}

ServerTree one_object(std::string name, std::string url) {
  ServerTree tree;
  tree.root = "/" + name;
  tree.listing = std::make_unique<OneObjectListing>(std::move(name), std::move(url));
  return tree;
}

/// What listings of a source have in common.
struct ListingParts {
  Requests& requests;
  std::chrono::seconds ttl;
  bool uses_index;
  std::function<void(const std::string&)> warn;
  RangeStore& store;
};

/// Returns the listing, with the index of its root, if that is to be used.
std::unique_ptr<Listing> with_index(const ListingParts& parts, std::unique_ptr<Listing> live) {
  std::unique_ptr<IndexSource> index;
  if (parts.uses_index && parts.ttl.count() > 0) {
    const std::string url = live->url_of(std::string(kIndexName));
    index = std::make_unique<IndexSource>(parts.requests, url, parts.ttl, parts.warn, std::chrono::steady_clock::now,
                                          parts.store);
  }
  return std::make_unique<IndexedListing>(std::move(live), std::move(index), parts.ttl);
}

std::unique_ptr<Listing> bucket_directory(const ListingParts& parts, const S3Service& service, std::string prefix) {
  return with_index(
      parts, std::make_unique<BucketListing>(parts.requests, service.object_url(""), std::move(prefix),
                                             [service](const std::string& key) { return service.object_url(key); }));
}

/// Returns the tree of a directory. A sparse frame is the one entry of its tree, as it is if its path names it.
ServerTree directory_tree(std::unique_ptr<Listing> inside, RemoteHeads& heads, std::string_view path) {
  ServerTree tree;
  tree.listing = std::move(inside);
  if (path.ends_with('/')) path.remove_suffix(1);
  const std::string name = last_name(path);
  if (!is_entry_name(name) || container_suffix(name).empty()) return tree;
  if (!heads.state(tree.listing->url_of(kSparseFrameIndex))) return tree;
  tree.listing = std::make_unique<OneDirectoryListing>(name, std::move(tree.listing));
  tree.root = "/" + name;
  return tree;
}

/// Returns the tree of a key without '/' at its end: the object, or if there is none the directory of that name.
Result<ServerTree> object_or_directory(const ListingParts& parts, RemoteHeads& heads, const S3Service& service,
                                       const std::string& key) {
  const std::string url = service.object_url(key);
  const auto state = heads.state(url);
  if (state) return one_object(last_name(key), url);
  // A user who may not list the bucket gets 403 for an object that does not exist.
  if (state.error().sys != ENOENT && state.error().sys != EACCES) return Failure(state.error());
  auto directory = bucket_directory(parts, service, key + "/");
  const auto entries = directory->list("");
  if (!entries || entries->empty()) return Failure(state.error());
  return directory_tree(std::move(directory), heads, key);
}

Result<ServerTree> tree_of(const Address& address, const ServerAccess& access, const ListingParts& parts,
                           RemoteHeads& heads) {
  if (access.service) {
    if (!address.is_directory()) return object_or_directory(parts, heads, *access.service, address.key);
    return directory_tree(bucket_directory(parts, *access.service, address.key), heads, address.key);
  }
  const std::string query = address.query.empty() ? "" : "?" + address.query;
  if (address.is_directory()) {
    auto directory =
        with_index(parts, std::make_unique<WebListing>(parts.requests, address.origin() + address.path, query));
    const auto path = percent_decode(address.path);
    return directory_tree(std::move(directory), heads, path ? *path : "");
  }
  auto name = percent_decode(last_name(address.path));
  if (!name) return Failure(name.error());
  if (name->find('/') != std::string::npos) return codec::invalid("the last name of the address holds an encoded '/'");
  return one_object(std::move(*name), address.url());
}

class ServerSource final : public RemoteSource {
 public:
  /// `certificates`: as CurlOptions.
  ServerSource(Address address, const RemoteOptions& options, std::string certificates)
      : address_(std::move(address)),
        transport_({.certificates = std::move(certificates)}),
        ttl_(std::chrono::duration_cast<std::chrono::seconds>(options.ttl)) {}
  ~ServerSource() override { stop(); }
  ServerSource(const ServerSource&) = delete;
  ServerSource& operator=(const ServerSource&) = delete;

  Result<void> begin(const std::string& text, const RemoteOptions& options) {
    if (!options.cache_dir.empty()) {
      auto cache = DiskCache::open(options.cache_dir, options.cache_disk);
      if (!cache) return Failure(cache.error());
      disk_ = std::move(*cache);
    }
    auto access = access_of(address_, options, surroundings_, transport_);
    if (!access) return Failure(access.error());
    authorizer_ = std::move(access->authorizer);
    served_url_ = access->service ? access->service->origin() : address_.url();
    requests_ =
        std::make_unique<OpeningRequests>(transport_, authorizer_ ? *authorizer_ : no_authorizer(), options.timeout);
    heads_ = std::make_unique<RemoteHeads>(*requests_, ttl_, std::chrono::steady_clock::now, store());
    auto tree = tree_of(address_, *access, {*requests_, ttl_, options.uses_index, options.warn, store()}, *heads_);
    if (!tree) return Failure(tree.error());
    root_ = std::move(tree->root);
    listing_ = std::move(tree->listing);
    caching_ = std::make_unique<CachingListing>(*listing_, ttl_);
    files_ =
        std::make_unique<RemoteFiles>(*caching_, *heads_, reading(), RemoteFiles::Named{text, root_, !access->service});
    const auto opened = files_->open_named(root_, O_RDONLY);
    if (!opened) return Failure(opened.error());
    files_->close(*opened);
    if (!address_.key.empty() && address_.is_directory()) {
      // A bucket has no directories: only its objects tell a prefix from a mistyped one.
      const auto listed = caching_->list("");
      if (listed && (*listed)->entries.empty()) return codec::io_error(ENOENT, "list", "no object has this prefix");
    }
    requests_->note_open();
    return {};
  }

  FileOps& files() override { return *files_; }
  std::string root() const override { return root_; }
  std::string shown_address() const override { return address_.shown(); }

  Result<MadeIndex> make_index(const IndexWork& work) override {
    if (root_ != "/")
      return codec::invalid("is one object; an index is that of a directory, whose address ends in '/'");
    RemoteTree tree(*caching_, *heads_, reading());
    auto built = IndexBuilder(tree).build(work);
    if (!built) return Failure(built.error());
    MadeIndex made;
    made.objects = built->objects.size();
    made.looked_at = built->looked_at;
    made.left_out = built->left_out;
    auto stored = encode_index(std::move(built->objects));
    if (!stored) return Failure(stored.error());
    made.stored = std::move(*stored);
    return made;
  }
  Result<void> put_index(const std::vector<std::uint8_t>& stored) override {
    constexpr std::uint64_t kMostAnswer = 64 << 10;
    HttpRequest request;
    request.method = "PUT";
    request.url = listing_->url_of(std::string(kIndexName));
    request.headers.push_back({"Content-Type", "application/octet-stream"});
    request.body = std::string(stored.begin(), stored.end());
    request.most_body = kMostAnswer;
    request.follows_redirects = false;
    RemoteRequests uploading(transport_, authorizer_ ? *authorizer_ : no_authorizer(),
                             patience_of_upload(stored.size()));
    const auto answer = uploading.send(std::move(request));
    return answer ? Result<void>() : Failure(answer.error());
  }
  Result<void> confine(RemoteConfinement confinement) override {
    const auto ports = needed_ports();
    load_resolvers();
    surroundings_.confine(std::move(confinement.open_file), std::move(confinement.run_program));
    requests_->end_threads();
    return transport_.confine(confinement.restricts_ports ? ports : std::vector<std::uint16_t>(),
                              [&] { return confinement.enter(network_files(), ports); });
  }
  void stop() override {
    if (requests_) requests_->stop();
    transport_.stop();
  }

 private:
  RangeStore& store() { return disk_ ? *disk_ : no_store(); }
  /// Returns the ports of servers: of the source, where it redirects to, of what gives credentials, of proxies.
  std::vector<std::uint16_t> needed_ports() {
    constexpr std::uint16_t kNames = 53;  // long answers of name servers come by TCP
    constexpr std::uint16_t kHttp = 80;
    constexpr std::uint16_t kHttps = 443;
    std::vector<std::uint16_t> ports = {kNames, kHttp, kHttps, port_of(served_url_)};
    const auto add = [&ports](const std::vector<std::uint16_t>& more) {
      ports.insert(ports.end(), more.begin(), more.end());
    };
    add(transport_.redirect_ports());
    add(proxy_ports());
    if (address_.scheme == Address::Scheme::s3 && authorizer_) {
      for (const std::string& url : credential_addresses(surroundings_))
        ports.push_back(port_of(url));
    }
    ports.erase(std::remove(ports.begin(), ports.end(), 0), ports.end());
    return ports;
  }
  ObjectReading reading() { return {*requests_, memory_, store()}; }

  const Address address_;
  SystemSurroundings surroundings_;
  CurlTransport transport_;
  const std::chrono::seconds ttl_;
  FetchedRanges memory_;
  std::unique_ptr<DiskCache> disk_;
  std::unique_ptr<Authorizer> authorizer_;
  std::unique_ptr<OpeningRequests> requests_;
  std::unique_ptr<RemoteHeads> heads_;
  std::unique_ptr<Listing> listing_;
  std::unique_ptr<CachingListing> caching_;
  std::unique_ptr<RemoteFiles> files_;
  std::string served_url_;  // of the source, or of its bucket's service
  std::string root_;
};

/// Returns the certificates of the file that the user names; empty if the user names none.
Result<std::string> certificates_of(const std::string& file) {
  if (file.empty()) return std::string();
  auto text = SystemSurroundings().file(file);
  if (text && text->empty()) return codec::invalid("ca_file: " + printable(file) + " is empty");
  return text;
}

}  // namespace

Result<std::unique_ptr<RemoteSource>> RemoteSource::open(const std::string& address, const RemoteOptions& options) {
  const auto named = [&address](Error error) {
    if (error.path.empty()) error.path = frame::shown_address(address);
    return Failure(std::move(error));
  };
  auto parsed = parse_address(address);
  if (!parsed) return named(parsed.error());
  auto certificates = certificates_of(options.ca_file);
  if (!certificates) return named(certificates.error());
  auto source = std::make_unique<ServerSource>(std::move(*parsed), options, std::move(*certificates));
  if (auto begun = source->begin(address, options); !begun) return named(begun.error());
  return std::unique_ptr<RemoteSource>(std::move(source));
}

}  // namespace cframefs::frame
