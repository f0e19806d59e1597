// The program cframefs: parses the command line and mounts; an error is one line on standard error.
//
// Thread safety: called once, from main(), which has the same arguments and result.
#pragma once

namespace cframefs::tools {

int run_cframefs_program(int argc, char** argv);

}  // namespace cframefs::tools
