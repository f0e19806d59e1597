#include "fs/tree/name_mapping.h"

#include <algorithm>
#include <array>
#include <climits>
#include <deque>
#include <unordered_set>
#include <utility>

#include "frame/base/suffixes.h"
#include "frame/io/replacement_file.h"
#include "fs/tree/name_spelling.h"

namespace cframefs::fs {
namespace {

using frame::kArraySuffix;
using frame::kContainerSuffixes;
using frame::kPackSuffix;
using frame::kTemporaryPrefix;

constexpr std::string_view kNpySuffix = ".npy";
constexpr std::string_view kNewSuffix = ".b2frame";
constexpr char kEscape = '+';

/// frame::kTemporaryPrefix without its dot.
constexpr std::string_view kReservedStem =
    std::string_view(kTemporaryPrefix).substr(0, std::string_view(kTemporaryPrefix).size() - 1);

/// Returns the length of `kReservedStem` if `name` is that stem, any number of `kEscape`, a dot, and anything. Returns
/// 0 for other names.
std::size_t reserved_stem(std::string_view name) {
  if (!name.starts_with(kReservedStem)) return 0;
  const std::size_t dot = name.find_first_not_of(kEscape, kReservedStem.size());
  return dot != std::string_view::npos && name[dot] == '.' ? kReservedStem.size() : 0;
}

/// The order in which names on disk get a short name that several of them could have.
bool shorter_first(std::string_view a, std::string_view b) {
  return a.size() != b.size() ? a.size() < b.size() : a < b;
}

/// Returns the names of all containers if one of the names could be that of a lock file, else none.
std::unordered_set<std::string> containers_beside_locks(const std::vector<StoredEntry>& entries) {
  std::unordered_set<std::string> containers;
  const auto may_be_lock = [](const StoredEntry& entry) {
    return entry.name.find(NameMapper::kLockSuffix) != std::string::npos;
  };
  if (std::none_of(entries.begin(), entries.end(), may_be_lock)) return containers;
  for (const StoredEntry& entry : entries) {
    if (is_container(entry.kind)) containers.insert(entry.name);
  }
  return containers;
}

/// Names that are in use. REQUIRES: the strings stay where they are.
class TakenNames {
 public:
  TakenNames(std::size_t count, bool folds_case) : folds_case_(folds_case) { names_.reserve(count); }
  /// Returns false if the name is in use already.
  bool take(std::string_view name) {
    if (!folds_case_) return names_.insert(name).second;
    return names_.insert(folded_.emplace_back(NameSpelling::folded(std::string(name)))).second;
  }

 private:
  const bool folds_case_;
  std::deque<std::string> folded_;
  std::unordered_set<std::string_view> names_;
};

}  // namespace

std::string_view NameMapper::suffix_of(std::string_view name) {
  return frame::container_suffix(name);
}

bool NameMapper::has_array_suffix(std::string_view name) {
  return suffix_of(name) == kArraySuffix;
}

bool NameMapper::needs_content_probe(std::string_view name) const {
  return names_ == Names::strip && arrays_ == ArrayView::npy && suffix_of(name) == kPackSuffix;
}

std::string_view NameMapper::replacement_of(std::string_view suffix, EntryKind kind) const {
  const bool array = suffix == kArraySuffix || (suffix == kPackSuffix && kind == EntryKind::packed_array);
  return array && arrays_ == ArrayView::npy ? kNpySuffix : std::string_view();
}

std::string NameMapper::stripped(const std::string& name, EntryKind kind) const {
  const std::string_view suffix = suffix_of(name);
  return name.substr(0, name.size() - suffix.size()) + std::string(replacement_of(suffix, kind));
}

bool NameMapper::is_temporary(std::string_view name) {
  return name.starts_with(kTemporaryPrefix);
}

std::string NameMapper::on_disk(const std::string& shown) {
  std::string stored = shown;
  if (const std::size_t stem = reserved_stem(shown); stem > 0) stored.insert(stem, 1, kEscape);
  return stored;
}

std::string NameMapper::in_mount(const std::string& stored) {
  std::string shown = stored;
  if (const std::size_t stem = reserved_stem(stored); stem > 0) shown.erase(stem, 1);
  return shown;
}

bool NameMapper::is_reserved(std::string_view name) {
  return name.starts_with(kReservedStem);
}

std::string_view NameMapper::without_suffixes(std::string_view name) {
  for (;;) {
    if (const std::string_view locked = locked_name(name); !locked.empty()) {
      name = locked;
    } else if (const std::string_view suffix = suffix_of(name); !suffix.empty()) {
      name.remove_suffix(suffix.size());
    } else if (name.size() > kNpySuffix.size() && name.ends_with(kNpySuffix)) {
      name.remove_suffix(kNpySuffix.size());
    } else {
      return name;
    }
  }
}

std::string_view NameMapper::locked_name(std::string_view name) {
  if (name.size() <= kLockSuffix.size() || !name.ends_with(kLockSuffix)) return {};
  return name.substr(0, name.size() - kLockSuffix.size());
}

std::string NameMapper::short_name_of(const std::string& name, EntryKind kind) const {
  return names_ == Names::keep ? name : stripped(name, kind);
}

std::string NameMapper::short_name(const StoredEntry& entry) const {
  return is_shortened(entry.kind) ? short_name_of(entry.name, entry.kind) : entry.name;
}

std::vector<ShownEntry> NameMapper::show(std::vector<StoredEntry> entries, bool folds_case) const {
  std::erase_if(entries,
                [](const StoredEntry& entry) { return entry.kind == EntryKind::none || is_temporary(entry.name); });
  for (StoredEntry& entry : entries) {
    if (reserved_stem(entry.name) > 0) entry.name = in_mount(entry.name);
  }
  const std::unordered_set<std::string> containers = containers_beside_locks(entries);
  const auto is_lock = [&](const std::string& name) {
    return !containers.empty() && containers.contains(std::string(locked_name(name)));
  };
  std::vector<StoredEntry*> in_order;
  in_order.reserve(entries.size());
  for (StoredEntry& entry : entries) {
    if (!is_lock(entry.name)) in_order.push_back(&entry);
  }
  std::sort(in_order.begin(), in_order.end(),
            [](const StoredEntry* a, const StoredEntry* b) { return shorter_first(a->name, b->name); });
  std::vector<ShownEntry> shown;
  shown.reserve(in_order.size());
  for (StoredEntry* const entry : in_order) {
    std::string name = short_name(*entry);
    shown.push_back({std::move(name), std::move(*entry)});
  }

  TakenNames taken(shown.size(), folds_case);
  // An entry without a short name of its own has its name from the start.
  for (const ShownEntry& entry : shown) {
    if (entry.shown == entry.stored.name) taken.take(entry.shown);
  }
  for (ShownEntry& entry : shown) {
    if (entry.shown == entry.stored.name) continue;
    // No entry gets the name of a lock file: no look-up would find it.
    if (!is_lock(entry.shown) && taken.take(entry.shown)) continue;
    entry.shown = entry.stored.name;
    taken.take(entry.shown);
  }
  for (ShownEntry& entry : shown) {
    if (reserved_stem(entry.stored.name) > 0) entry.stored.name = on_disk(entry.stored.name);
  }
  return shown;
}

std::vector<std::string> NameMapper::stored_names_of(std::string_view shown) const {
  std::vector<std::string> names;
  const auto add = [&](std::string_view suffix, EntryKind kind) {
    const std::string_view replacement = replacement_of(suffix, kind);
    if (shown.size() <= replacement.size() || !shown.ends_with(replacement)) return;
    // A longer name cannot exist, and looking for it would fail with ENAMETOOLONG.
    if (shown.size() - replacement.size() + suffix.size() > NAME_MAX) return;
    names.push_back(std::string(shown.substr(0, shown.size() - replacement.size())) + std::string(suffix));
  };
  for (const std::string_view suffix : kContainerSuffixes)
    add(suffix, EntryKind::frame);
  if (arrays_ == ArrayView::npy) add(kPackSuffix, EntryKind::packed_array);
  std::sort(names.begin(), names.end(), shorter_first);
  return names;
}

codec::Result<StoredEntry> NameMapper::resolve_shown(const std::string& shown, const KindOf& kind_of) const {
  auto owner = owner_among(shown, [&](const std::string& name) { return kind_of(on_disk(name)); });
  if (owner) owner->name = on_disk(owner->name);
  return owner;
}

/// As resolve_shown(), with the names on disk converted by in_mount().
codec::Result<StoredEntry> NameMapper::owner_among(const std::string& shown, const KindOf& kind_of) const {
  if (const std::string_view locked = locked_name(shown); !locked.empty()) {
    auto kind = kind_of(std::string(locked));
    if (!kind) return codec::Failure(kind.error());
    if (is_container(*kind)) return StoredEntry{};
  }
  auto kind = kind_of(shown);
  if (!kind) return codec::Failure(kind.error());
  if (*kind != EntryKind::none) {
    StoredEntry itself{shown, *kind};
    const std::string own_short = short_name(itself);
    if (own_short == shown) return itself;
    // The entry shows under its full name only if another entry has its short name.
    auto owner = owner_among(own_short, kind_of);
    if (!owner) return owner;
    if (owner->name != shown) return itself;
  }
  if (names_ == Names::keep) return StoredEntry{};
  for (const std::string& name : stored_names_of(shown)) {
    StoredEntry candidate{name, EntryKind::none};
    auto candidate_kind = kind_of(candidate.name);
    if (!candidate_kind) return codec::Failure(candidate_kind.error());
    candidate.kind = *candidate_kind;
    if (is_shortened(candidate.kind) && short_name(candidate) == shown) return candidate;
  }
  return StoredEntry{};
}

bool NameMapper::names_new_frame(std::string_view name) const {
  const std::string_view suffix = suffix_of(name);
  if (npy_as_array_ && suffix == kArraySuffix) return true;
  return suffix == kNewSuffix || suffix == ".b2f" || suffix == ".b2" || suffix == frame::kSavedSuffix;
}

std::string NameMapper::new_name(const std::string& shown) const {
  if (npy_as_array_ && shown.size() > kNpySuffix.size() && shown.ends_with(kNpySuffix)) {
    return on_disk(shown.substr(0, shown.size() - kNpySuffix.size()) + std::string(kArraySuffix));
  }
  return on_disk(names_ == Names::keep ? shown : shown + std::string(kNewSuffix));
}

std::string NameMapper::renamed_container(const StoredEntry& stored, const std::string& shown) const {
  if (names_ == Names::keep) return on_disk(shown);
  if (const std::string_view suffix = suffix_of(stored.name); !suffix.empty()) {
    const std::string_view replacement = replacement_of(suffix, stored.kind);
    if (!shown.ends_with(replacement)) return {};
    return on_disk(shown.substr(0, shown.size() - replacement.size()) + std::string(suffix));
  }
  // A container found by content needs no suffix, unless its new name would lose one.
  return on_disk(suffix_of(shown).empty() ? shown : shown + std::string(kNewSuffix));
}

bool NameMapper::shortens_link(std::string_view name, std::string_view target) const {
  const std::string_view suffix = suffix_of(name);
  const std::string_view target_suffix = suffix_of(target.substr(target.rfind('/') + 1));
  if (names_ == Names::keep || suffix.empty() || target_suffix.empty()) return false;
  if (suffix == kPackSuffix || target_suffix == kPackSuffix) return false;
  return replacement_of(suffix, EntryKind::frame) == replacement_of(target_suffix, EntryKind::frame);
}

std::string NameMapper::stored_target(const std::string& target) const {
  return shown_target(target) == target ? target : target + std::string(kNewSuffix);
}

std::string NameMapper::shown_target(const std::string& target, EntryKind kind) const {
  if (names_ == Names::keep || target.starts_with('/')) return target;
  return stripped(target, kind);
}

}  // namespace cframefs::fs
