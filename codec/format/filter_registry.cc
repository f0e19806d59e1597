#include "codec/format/filter_registry.h"

#include <algorithm>
#include <vector>

namespace cframefs::codec {
namespace {

struct Name {
  std::uint8_t id;
  std::string_view text;
  bool writable;  // the encoder can apply it, without loss
};

constexpr std::uint8_t id(FilterId filter) {
  return static_cast<std::uint8_t>(filter);
}

constexpr std::array<Name, 10> kFilters{{
    {id(FilterId::none), "none", true},
    {id(FilterId::shuffle), "shuffle", true},
    {id(FilterId::bitshuffle), "bitshuffle", true},
    {id(FilterId::delta), "delta", true},
    {id(FilterId::bytedelta), "bytedelta", true},
    {id(FilterId::trunc_prec), "trunc_prec", false},
    {id(FilterId::ndcell), "ndcell", false},
    {id(FilterId::ndmean), "ndmean", false},
    {id(FilterId::bytedelta_old), "bytedelta_old", false},
    {id(FilterId::int_trunc), "int_trunc", false},
}};

Result<std::uint8_t> find_filter(std::string_view text) {
  std::string known;
  for (const Name& name : kFilters) {
    if (!name.writable) continue;
    if (name.text == text) return name.id;
    known += (known.empty() ? "" : ", ") + std::string(name.text);
  }
  return invalid("must be one of " + known + ", or several joined with +");
}

}  // namespace

std::string filter_name(std::uint8_t id) {
  const auto* const found =
      std::find_if(kFilters.begin(), kFilters.end(), [id](const Name& name) { return name.id == id; });
  return found != kFilters.end() ? std::string(found->text) : "filter " + std::to_string(id);
}

Result<FilterSlots> filters_named(std::string_view names) {
  std::vector<std::uint8_t> ids;
  for (std::string_view rest = names;;) {
    const std::size_t plus = std::min(rest.find('+'), rest.size());
    const Result<std::uint8_t> filter = find_filter(rest.substr(0, plus));
    if (!filter) return Failure(filter.error());
    if (*filter == id(FilterId::delta) && std::find(ids.begin(), ids.end(), *filter) != ids.end()) {
      return invalid("has delta twice, which the reference library decodes to other bytes");
    }
    if (*filter != 0) {
      ids.push_back(*filter);
    } else if (names.size() != plus) {
      return invalid("cannot join none with a filter");
    }
    if (plus == rest.size()) break;
    rest.remove_prefix(plus + 1);
  }
  FilterSlots slots{};
  if (ids.size() > slots.size()) return invalid("has more than 6 filters");
  std::copy(ids.begin(), ids.end(), slots.end() - static_cast<std::ptrdiff_t>(ids.size()));
  return slots;
}

}  // namespace cframefs::codec
