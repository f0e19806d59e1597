// A directory with one directory, which another listing tells: a sparse frame that a source names by its own address.
//
// Thread safety: as the other listing. Ownership: owns it. Errors: those of the other listing; io ENOENT for a
// directory that is not in it.
#pragma once

#include <cerrno>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "frame/remote/listings/listing.h"

namespace cframefs::frame {

class OneDirectoryListing final : public Listing {
 public:
  /// `name`: of the directory that is the root of `inside`.
  OneDirectoryListing(std::string name, std::unique_ptr<Listing> inside)
      : name_(std::move(name)), inside_(std::move(inside)) {}

  Result<std::vector<ListedEntry>> list(const std::string& directory) override {
    if (directory.empty()) return std::vector<ListedEntry>{{name_, true, std::nullopt}};
    if (directory == name_) return inside_->list("");
    if (!directory.starts_with(name_ + '/')) return codec::io_error(ENOENT, "list");
    return inside_->list(directory.substr(name_.size() + 1));
  }
  std::string url_of(const std::string& path) const override {
    return inside_->url_of(path.starts_with(name_ + '/') ? path.substr(name_.size() + 1) : "");
  }

 private:
  const std::string name_;
  const std::unique_ptr<Listing> inside_;
};

}  // namespace cframefs::frame
