// The static build: both programs in one file. Called as cframe it is cframe, by any other name cframefs.
#include <string_view>

#include "tools/cframe/cframe_program.h"
#include "tools/cframefs/cframefs_program.h"

int main(int argc, char** argv) {
  using namespace cframefs::tools;
  std::string_view name = argc > 0 ? argv[0] : "";
  name.remove_prefix(name.rfind('/') + 1);  // without a '/', npos + 1 is 0
  return name == "cframe" ? run_cframe_program(argc, argv) : run_cframefs_program(argc, argv);
}
