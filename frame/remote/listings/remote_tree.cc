#include "frame/remote/listings/remote_tree.h"

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>

#include <dirent.h>

#include "frame/base/xxh3.h"
#include "frame/remote/listings/listing_text.h"
#include "frame/remote/objects/kept_ranges.h"

namespace cframefs::frame {

namespace {

using codec::Failure;
using codec::io_error;

// Stores and decoded views use the bits above.
constexpr std::uint64_t kInodeBits = (std::uint64_t{1} << 60) - 1;

std::uint64_t inode_of_text(std::string text) {
  const std::uint64_t hash = xxh3(codec::bytes_of(std::span(text.data(), text.size())));
  return std::max<std::uint64_t>(hash & kInodeBits, 1);
}

std::uint64_t inode_of_path(const std::string& path) {
  return inode_of_text(path);
}

/// Returns the inode of a state of an object. The date counts only without a tag, as a listing and an answer may tell
/// it differently.
std::uint64_t inode_of_state(const std::string& path, const ObjectState& state) {
  const std::string& tag = state.entity_tag;
  const std::string mark = tag.empty() ? std::to_string(state.last_modified) : tag;
  return inode_of_text(path + '\n' + mark + '\n' + std::to_string(state.length));
}

std::string path_below(const std::string& directory, const std::string& name) {
  return directory.empty() ? name : directory + '/' + name;
}

std::string_view suffix_below_name(const std::string& name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string::npos ? std::string_view() : std::string_view(name).substr(dot);
}

codec::Failure replaced() {
  return codec::stale("the object was replaced on the server");
}

RemoteTree::Node new_root() {
  auto root = std::make_shared<RemoteNode>();
  root->is_directory = true;
  root->inode = inode_of_path({});
  return root;
}

}  // namespace

RemoteTree::RemoteTree(CachingListing& listing, RemoteHeads& heads, ObjectReading reading)
    : listing_(listing), heads_(heads), reading_(std::move(reading)), root_(new_root()) {}

// ---- look-ups ----------------------------------------------------------------------------------------------------

Result<RemoteTree::Node> RemoteTree::find(const Node& from, const std::string& path) {
  if (path.find('\0') != std::string::npos) return io_error(EINVAL, "open");
  if (path.empty()) return io_error(ENOENT, "open");
  if (path.front() == '/') return io_error(EXDEV, "open");
  Node node = from;
  std::string_view rest = path;
  while (true) {
    const std::size_t slash = rest.find('/');
    const std::string name(rest.substr(0, slash));
    if (!node->is_directory) return io_error(ENOTDIR, "open");
    if (name == "..") return io_error(EXDEV, "open");
    if (name.size() > kMostNameBytes) return io_error(ENAMETOOLONG, "open");
    if (!name.empty() && name != ".") {
      auto found = child(*node, name);
      if (!found) return found;
      node = std::move(*found);
    }
    if (slash == std::string_view::npos) return node;
    rest.remove_prefix(slash + 1);
  }
}

Result<RemoteTree::Node> RemoteTree::child(const RemoteNode& directory, const std::string& name) {
  const auto listed = listing_.list(directory.path);
  if (!listed) return Failure(listed.error());
  const ListedEntry* entry = (*listed)->find(name);
  return entry == nullptr ? unlisted_child(directory, name) : child_of(directory, **listed, *entry);
}

/// Looks for a name that the listing does not tell.
Result<RemoteTree::Node> RemoteTree::unlisted_child(const RemoteNode& directory, const std::string& name) {
  auto entry = listing_.source().find_unlisted(directory.path, name);
  if (!entry) return Failure(entry.error());
  if (!*entry) return io_error(ENOENT, "open");
  if (!(*entry)->is_directory && !(*entry)->state) {
    const auto state = heads_.state(listing_.url_of(path_below(directory.path, name)));
    // Nothing tells that there is an object: a refusal adds none.
    if (!state && state.error().sys == EACCES) return io_error(ENOENT, "open");
    if (!state && state.error().kind != ErrorKind::unsupported) return Failure(state.error());
  }
  const ListedDirectory listed{{std::move(**entry)}};
  return child_of(directory, listed, listed.entries.front());
}

Result<RemoteTree::Node> RemoteTree::child_of(const RemoteNode& directory, const ListedDirectory& listed,
                                              const ListedEntry& entry) {
  const std::string path = path_below(directory.path, entry.name);
  if (entry.is_directory) {
    auto node = std::make_shared<RemoteNode>();
    node->path = path;
    node->is_directory = true;
    node->inode = inode_of_path(path);
    return node;
  }
  const std::string url = listing_.url_of(path);
  auto stated = state_of_entry(directory.path, listed, entry, path, url);
  if (!stated) return Failure(stated.error());
  return node_of(entry, path, url, std::move(*stated));
}

/// Returns whether the object was asked for and missing, though the listing tells it.
bool RemoteTree::is_known_missing(const ListedEntry& entry, const std::string& path) {
  if (!entry.state) return false;
  const auto correction = corrections_.find(path);
  return correction && correction->listed == *entry.state && correction->is_missing;
}

/// Returns the state of an object as far as it is known without a request.
std::optional<ObjectState> RemoteTree::known_state(const ListedEntry& entry, const std::string& path,
                                                   const std::string& url) {
  if (!entry.state) return heads_.remembered_state(url);
  const auto correction = corrections_.find(path);
  return correction && correction->listed == *entry.state ? correction->actual : entry.state;
}

Result<RemoteTree::Stated> RemoteTree::state_of_entry(const std::string& directory, const ListedDirectory& listed,
                                                      const ListedEntry& entry, const std::string& path,
                                                      const std::string& url) {
  if (auto known = known_state(entry, path, url)) return Stated{std::move(*known), nullptr};
  if (entry.state) {
    auto opened = open_for_state(url);
    if (opened) corrections_.replace(path, Correction{*entry.state, opened->state}, 1);
    if (opened && listing_.source().is_dated()) heads_.remember(url, opened->state);
    if (!opened && codec::is_missing(opened.error()))
      corrections_.replace(path, Correction{*entry.state, std::nullopt, true}, 1);
    return opened;
  }
  // A known object is not opened again, only its state is asked for.
  if (ask_in_order(directory, listed, entry) || nodes_.find(path) || heads_.is_known(url)) {
    auto state = heads_.state(url);
    if (state) return Stated{std::move(*state), nullptr};
    // Opening the object copes with more servers.
    if (state.error().kind != ErrorKind::unsupported) return Failure(state.error());
  }
  auto opened = open_for_state(url);
  if (opened) heads_.remember(url, opened->state);
  return opened;
}

Result<RemoteTree::Stated> RemoteTree::open_for_state(const std::string& url) {
  auto object = RemoteObject::open(reading_, url, nullptr);
  if (!object) return Failure(object.error());
  ObjectState state = (*object)->state();
  return Stated{std::move(state), std::move(*object)};
}

RemoteTree::Node RemoteTree::node_of(const ListedEntry& entry, const std::string& path, const std::string& url,
                                     Stated stated) {
  // A version is told by answers alone, and must not make two states of one.
  stated.state.version_id.clear();
  const auto known = nodes_.find(path);
  if (known && (*known)->state == stated.state && (*known)->listed == entry.state) {
    // The server tells the state of the node: a node that was replaced holds again, and the newer object serves better.
    if (stated.object || (*known)->is_replaced) {
      const codec::MutexLock lock((*known)->mutex);
      (*known)->object = std::move(stated.object);
      (*known)->is_replaced = false;
    }
    return *known;
  }
  auto node = std::make_shared<RemoteNode>();
  node->path = path;
  node->url = url;
  node->inode = inode_of_state(path, stated.state);
  node->state = std::move(stated.state);
  node->listed = entry.state;
  {
    const codec::MutexLock lock(node->mutex);
    node->object = std::move(stated.object);
  }
  nodes_.replace(path, node, 1);
  return node;
}

/// Returns whether the caller goes through the directory in order; then requests for the heads of the entry and of
/// those behind it have been started.
bool RemoteTree::ask_in_order(const std::string& directory, const ListedDirectory& listed, const ListedEntry& entry) {
  const auto index = static_cast<std::size_t>(&entry - listed.entries.data());
  const std::size_t window = look_ahead_.note(directory, index);
  if (window == 0) return false;
  // Where states are listed, heads are wanted for what is in them: of frames, not of the tables beside them.
  const std::string_view suffix = suffix_below_name(entry.name);
  std::vector<std::string> urls{listing_.url_of(path_below(directory, entry.name))};
  const std::size_t end = std::min(listed.entries.size(), index + 1 + window);
  for (std::size_t i = index + 1; i < end; ++i) {
    const ListedEntry& next = listed.entries[i];
    if (next.is_directory || (next.state && (next.state->length == 0 || suffix_below_name(next.name) != suffix))) {
      continue;
    }
    std::string url = listing_.url_of(path_below(directory, next.name));
    if (!next.state || !heads_.kept(url, *next.state)) urls.push_back(std::move(url));
  }
  heads_.ask_ahead(urls);
  return true;
}

Result<std::vector<DirectoryEntry>> RemoteTree::list(const RemoteNode& directory) {
  if (!directory.is_directory) return io_error(ENOTDIR, "list");
  const auto listed = listing_.list(directory.path);
  if (!listed) return Failure(listed.error());
  std::vector<DirectoryEntry> entries;
  entries.reserve((*listed)->entries.size());
  for (const ListedEntry& entry : (*listed)->entries) {
    const std::string path = path_below(directory.path, entry.name);
    if (entry.is_directory) {
      entries.push_back({entry.name, inode_of_path(path), DT_DIR});
      continue;
    }
    // Otherwise a dated listing would tell it for as long as it is not written again.
    if (listing_.source().is_dated() && is_known_missing(entry, path)) continue;
    const auto state = known_state(entry, path, entry.state ? std::string() : listing_.url_of(path));
    entries.push_back({entry.name, state ? inode_of_state(path, *state) : inode_of_path(path), DT_REG});
  }
  return entries;
}

// ---- reads -------------------------------------------------------------------------------------------------------

RemoteTree::Object RemoteTree::opened(RemoteNode& node) {
  const codec::MutexLock lock(node.mutex);
  return node.object;
}

Result<RemoteTree::Object> RemoteTree::object_of(RemoteNode& node) {
  if (Object object = opened(node)) return object;
  return node.opening.run(SharedAttempt<Object>::Serves::running, [&]() -> Result<Object> {
    if (Object object = opened(node)) return object;
    if (node.is_replaced) return replaced();
    auto object = RemoteObject::open(reading_, node.url, &node.state);
    if (!object) return object;
    if (!may_be_same_state((*object)->state(), node.state)) {
      note_replaced(node, (*object)->state());
      return replaced();
    }
    const codec::MutexLock lock(node.mutex);
    node.object = *object;
    return object;
  });
}

/// Records that the server has another state than the node; `actual`: which one, if that is known.
void RemoteTree::note_replaced(RemoteNode& node, const std::optional<ObjectState>& actual) {
  node.is_replaced = true;
  if (node.listed) corrections_.replace(node.path, Correction{*node.listed, actual}, 1);
  // What a dated listing tells is compared with what is remembered here.
  if (node.listed && !listing_.source().is_dated()) return;
  if (actual) {
    heads_.remember(node.url, *actual);
  } else {
    heads_.forget(node.url);
  }
}

void RemoteTree::note_missing(RemoteNode& node) {
  note_replaced(node, std::nullopt);
  if (node.listed) corrections_.replace(node.path, Correction{*node.listed, std::nullopt, true}, 1);
}

/// Starts to fetch what a reader needs first.
void RemoteTree::fetch_ends_ahead(RemoteNode& node) {
  const std::uint64_t tail = KeptRanges::tail_bytes(node.state.length);
  prefetch(node, FileOffset{0}, KeptRanges::kHeadBytes);
  if (node.state.length > tail) prefetch(node, FileOffset{node.state.length - tail}, tail);
}

Result<void> RemoteTree::confirm(RemoteNode& node) {
  if (node.is_directory || !listing_.source().is_dated()) return {};
  if (!heads_.remembered_state(node.url)) fetch_ends_ahead(node);
  const auto state = heads_.state(node.url);
  if (!state) {
    if (codec::is_missing(state.error())) note_missing(node);
    // The server sends long objects whole only. Reads are tied to the state nevertheless.
    return state.error().kind == ErrorKind::unsupported ? Result<void>() : Failure(state.error());
  }
  if (may_be_same_state(*state, node.state)) return {};
  note_replaced(node, *state);
  return replaced();
}

/// Returns the first bytes of the object, if they are kept, or if the caller goes through the directory in order; else
/// nullptr.
Result<RemoteHeads::Head> RemoteTree::head_of(RemoteNode& node) {
  if (auto kept = heads_.kept(node.url, node.state)) return kept;
  const std::size_t slash = node.path.rfind('/');
  const std::string directory = slash == std::string::npos ? std::string() : node.path.substr(0, slash);
  const auto listed = listing_.remembered(directory);
  const ListedEntry* entry =
      listed ? listed->find(slash == std::string::npos ? node.path : node.path.substr(slash + 1)) : nullptr;
  if (entry == nullptr || !ask_in_order(directory, *listed, *entry)) return RemoteHeads::Head();
  auto head = heads_.head(node.url);
  if (!head) return head.error().kind == ErrorKind::unsupported ? Result<RemoteHeads::Head>(nullptr) : head;
  if (!may_be_same_state((*head)->state, node.state)) {
    note_replaced(node, (*head)->state);
    return replaced();
  }
  return head;
}

Result<std::size_t> RemoteTree::read(RemoteNode& node, ByteSpan into, FileOffset at) {
  if (node.is_directory) return io_error(EISDIR, "read");
  const std::uint64_t length = node.state.length;
  if (at.value >= length) return std::size_t{0};
  const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), length - at.value));
  if (count == 0) return count;
  if (!node.is_replaced && !opened(node) && listing_.source().copy_known(node.path, node.state, at, into.first(count)))
    return count;
  const bool is_opened = opened(node) != nullptr;
  if (at.value < RemoteHeads::kHeadBytes && count <= RemoteHeads::kHeadBytes - at.value &&
      (!is_opened || length <= RemoteHeads::kHeadBytes)) {
    const auto head = is_opened ? Result<RemoteHeads::Head>(heads_.kept(node.url, node.state)) : head_of(node);
    if (!head) return Failure(head.error());
    if (*head && (*head)->bytes.size() >= at.value + count) {
      std::copy_n((*head)->bytes.begin() + static_cast<std::ptrdiff_t>(at.value), count, into.begin());
      return count;
    }
  }
  const auto object = object_of(node);
  if (!object) return Failure(object.error());
  if (const auto done = (*object)->read(at, into.first(count)); !done) {
    if (done.error().kind == ErrorKind::stale) note_replaced(node, std::nullopt);
    return Failure(done.error());
  }
  return count;
}

/// Returns the object for a request ahead; nullptr if none is needed, or if it would send one to open the object.
RemoteTree::Object RemoteTree::object_at_hand(RemoteNode& node) {
  if (node.state.length <= RemoteHeads::kHeadBytes && heads_.kept(node.url, node.state)) return nullptr;
  if (Object object = opened(node)) return object;
  // The opening of an identified state sends nothing.
  if (!node.state.is_identified()) return nullptr;
  auto object = object_of(node);
  return object ? std::move(*object) : nullptr;
}

void RemoteTree::prefetch(RemoteNode& node, FileOffset at, std::uint64_t length) {
  const std::uint64_t size = node.state.length;
  if (node.is_directory || at.value >= size || length == 0) return;
  if (const Object object = object_at_hand(node)) object->prefetch(at, std::min(length, size - at.value));
}

void RemoteTree::expect(RemoteNode& node, FileOffset at, std::uint64_t length) {
  const std::uint64_t size = node.state.length;
  if (node.is_directory || at.value >= size || length == 0) return;
  if (const Object object = object_at_hand(node)) object->expect(at, std::min(length, size - at.value));
}

Result<void> RemoteTree::fetch(RemoteNode& node, FileOffset at, std::uint64_t length) {
  const std::uint64_t size = node.state.length;
  if (node.is_directory || at.value >= size || length == 0) return {};
  if (size <= RemoteHeads::kHeadBytes && heads_.kept(node.url, node.state)) return {};
  const auto object = object_of(node);
  if (!object) return Failure(object.error());
  auto done = (*object)->fetch(at, std::min(length, size - at.value));
  if (!done && done.error().kind == ErrorKind::stale) note_replaced(node, std::nullopt);
  return done;
}

}  // namespace cframefs::frame
