// The interface of the metalayers of a container: named contents beside the chunks.
//
// Fixed metalayers are stored in the header and keep their lengths; variable-length metalayers are stored compressed,
// in the trailer. The default implementations are those of a container without fixed metalayers.
//
// Thread safety: immutable; const members may run concurrently. Errors: corruption; unsupported (a content is longer
// than the size of the file justifies); invalid (there is no metalayer of that name); io passes through.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "frame/base/coordinates.h"
#include "frame/io/byte_source.h"

namespace cframefs::frame {

class ParseBudget;

struct Metalayer {
  std::string name;
  std::vector<std::uint8_t> content;  // uncompressed
};

/// A fixed metalayer, stored in the header.
struct MetalayerPlace {
  std::string name;
  FileOffset offset;                                                // of its content
  std::uint64_t length = 0;                                         // of its content
  std::optional<std::vector<std::uint8_t>> content = std::nullopt;  // set if it is short
};

class Metalayers {
 public:
  virtual ~Metalayers() = default;

  /// Returns the fixed metalayers in stored order.
  virtual const std::vector<MetalayerPlace>& metalayer_places() const;
  /// Returns the content of a fixed metalayer. unsupported: it is longer than the size of the file justifies.
  virtual Result<std::vector<std::uint8_t>> metalayer(const MetalayerPlace& place) const;
  /// Returns all fixed metalayers with their contents.
  Result<std::vector<Metalayer>> metalayers() const;
  /// Set if some fixed metalayers could not be read. The chunks are readable even then, but the lost metalayers may
  /// have described them as tiles of an array.
  virtual const std::optional<Error>& metalayer_damage() const { return no_damage(); }
  /// Returns the known names of fixed metalayers that could not be read.
  virtual std::vector<std::string> lost_metalayers() const { return {}; }
  /// Returns the names of the variable-length metalayers in stored order.
  virtual std::vector<std::string> vlmetalayer_names() const = 0;
  /// Set if some of these names could not be read.
  virtual const std::optional<Error>& vlmetalayer_damage() const { return no_damage(); }
  /// Returns the uncompressed length of a variable-length metalayer; the default implementation decompresses it.
  /// invalid: the name does not exist.
  virtual Result<std::uint64_t> vlmetalayer_length(const std::string& name) const;
  /// Returns the uncompressed content of a variable-length metalayer. invalid: the name does not exist.
  virtual Result<std::vector<std::uint8_t>> vlmetalayer(const std::string& name) const = 0;
  /// Checks that a variable-length metalayer can be decoded. unsupported: that would cost more than `budget`.
  virtual Result<void> check_vlmetalayer(const std::string& name, ParseBudget& budget) const;

 protected:
  static const std::optional<Error>& no_damage() {
    static const std::optional<Error> none;
    return none;
  }
};

}  // namespace cframefs::frame
