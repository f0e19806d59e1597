// What a subcommand makes: a file that appears whole under its name (new_file.h), or what goes to standard output for
// "-" when it is whole.
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
  /// `replace`: a regular file that is there already is replaced. `like`: gives mode and times. `remedy`: as NewFile
  /// has it.
  static codec::Result<ResultFile> create(const std::string& argument, bool replace, const FileTraits& like, Io& io,
                                          const char* remedy = "; --force replaces it");

  /// What is written to, at any place.
  int fd() const { return named_ ? named_->fd() : unnamed_.fd(); }
  codec::Result<void> publish();

 private:
  explicit ResultFile(Io& io) : io_(&io) {}

  Io* io_;
  std::optional<NewFile> named_;
  frame::Descriptor unnamed_;  // for standard output
};

}  // namespace cframefs::tools
