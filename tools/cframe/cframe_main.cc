#include "tools/cframe/cframe_program.h"

int main(int argc, char** argv) {
  return cframefs::tools::run_cframe_program(argc, argv);
}
