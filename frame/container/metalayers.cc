#include "frame/container/metalayers.h"

#include <utility>

#include "frame/base/parse_budget.h"

namespace cframefs::frame {

Result<std::vector<Metalayer>> Metalayers::metalayers() const {
  std::vector<Metalayer> layers;
  for (const MetalayerPlace& place : metalayer_places()) {
    auto content = metalayer(place);
    if (!content) return codec::Failure(content.error());
    layers.push_back(Metalayer{place.name, std::move(*content)});
  }
  return layers;
}

const std::vector<MetalayerPlace>& Metalayers::metalayer_places() const {
  static const std::vector<MetalayerPlace> none;
  return none;
}

Result<std::vector<std::uint8_t>> Metalayers::metalayer(const MetalayerPlace& place) const {
  return codec::invalid("there is no fixed metalayer '" + place.name + "'");
}

Result<std::uint64_t> Metalayers::vlmetalayer_length(const std::string& name) const {
  const auto content = vlmetalayer(name);
  if (!content) return codec::Failure(content.error());
  return content->size();
}

Result<void> Metalayers::check_vlmetalayer(const std::string& name, ParseBudget& budget) const {
  if (auto may = budget.spend_work(ParseBudget::kStep, "metalayer '" + name + "'"); !may) return may;
  const auto content = vlmetalayer(name);
  return content ? Result<void>() : codec::Failure(content.error());
}

}  // namespace cframefs::frame
