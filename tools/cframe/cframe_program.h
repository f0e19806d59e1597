// The program cframe: signals and descriptors around cframe_main().
//
// Thread safety: called once, from main(), which has the same arguments and result.
#pragma once

namespace cframefs::tools {

int run_cframe_program(int argc, char** argv);

}  // namespace cframefs::tools
