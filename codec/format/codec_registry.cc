#include "codec/format/codec_registry.h"

#include <algorithm>
#include <vector>

namespace cframefs::codec {
namespace {

struct Name {
  std::uint8_t id;
  std::string_view text;
  bool writable;  // the encoder can make chunks with it, without loss
};

constexpr std::array<Name, 15> kCodecs{{
    {0, "blosclz", true},
    {1, "lz4", true},
    {2, "lz4hc", true},
    {3, "snappy", false},
    {4, "zlib", true},
    {5, "zstd", true},
    {32, "ndlz", false},
    {33, "zfp_acc", false},
    {34, "zfp_prec", false},
    {35, "zfp_rate", false},
    {36, "openhtj2k", false},
    {37, "grok", false},
    {38, "openzl", false},
    {39, "j2k", false},
    {40, "htj2k", false},
}};

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

template <std::size_t size>
std::string name_in(const std::array<Name, size>& names, std::uint8_t id, std::string_view kind) {
  const auto found = std::find_if(names.begin(), names.end(), [id](const Name& name) { return name.id == id; });
  if (found != names.end()) return std::string(found->text);
  return std::string(kind) + ' ' + std::to_string(id);
}

template <std::size_t size>
Result<std::uint8_t> id_in(const std::array<Name, size>& names, std::string_view text, std::string_view more) {
  std::string known;
  for (const Name& name : names) {
    if (!name.writable) continue;
    if (name.text == text) return name.id;
    known += (known.empty() ? "" : ", ") + std::string(name.text);
  }
  return invalid("must be one of " + known + std::string(more));
}

}  // namespace

std::string codec_name(std::uint8_t compcode) {
  return name_in(kCodecs, compcode, "codec");
}

std::string filter_name(std::uint8_t id) {
  return name_in(kFilters, id, "filter");
}

Result<std::uint8_t> find_codec(std::string_view name) {
  return id_in(kCodecs, name, "");
}

Result<FilterSlots> filters_named(std::string_view names) {
  std::vector<std::uint8_t> ids;
  for (std::string_view rest = names;;) {
    const std::size_t plus = std::min(rest.find('+'), rest.size());
    const Result<std::uint8_t> filter = id_in(kFilters, rest.substr(0, plus), ", or several joined with +");
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
