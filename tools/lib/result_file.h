// The output of a subcommand: a file that gets its name once it is complete (new_file.h), or, for "-", a temporary file
// that is copied to standard output once it is complete.
//
// Thread safety: one thread. Ownership: owns the file. Errors: as new_file.h; invalid if a frame is to be written to a
// terminal.
#pragma once

#include <optional>
#include <string>

#include "tools/lib/input_file.h"
#include "tools/lib/new_file.h"

namespace cframefs::tools {

class ResultFile {
 public:
  /// Creates the output. `replace`: replaces an existing regular file. `like`: mode and times. `remedy`: as in NewFile.
  static codec::Result<ResultFile> create(const std::string& argument, bool replace, const FileTraits& like, Io& io,
                                          const char* remedy = "; --force replaces it");

  /// Returns the open file to write to, at any offset.
  frame::OpenFile handle() const { return named_ ? named_->handle() : unnamed_.handle(); }
  codec::Result<void> publish();

 private:
  explicit ResultFile(Io& io) : io_(&io) {}

  Io* io_;
  std::optional<NewFile> named_;
  frame::Descriptor unnamed_;  // for standard output
};

}  // namespace cframefs::tools
