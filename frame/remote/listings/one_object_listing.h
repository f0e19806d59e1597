// A directory with one object, whose own directory need not be listable.
//
// Thread safety: immutable. Ownership: values. Errors: io ENOENT for another directory than the root.
#pragma once

#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "frame/remote/listings/listing.h"

namespace cframefs::frame {

class OneObjectListing final : public Listing {
 public:
  OneObjectListing(std::string name, std::string url) : name_(std::move(name)), url_(std::move(url)) {}

  Result<std::vector<ListedEntry>> list(const std::string& directory) override {
    if (!directory.empty()) return codec::io_error(ENOENT, "list");
    return std::vector<ListedEntry>{{name_, false, std::nullopt}};
  }
  std::string url_of(const std::string& /*path*/) const override { return url_; }

 private:
  const std::string name_;
  const std::string url_;
};

}  // namespace cframefs::frame
