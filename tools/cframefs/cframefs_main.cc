#include "tools/cframefs/cframefs_program.h"

int main(int argc, char** argv) {
  return cframefs::tools::run_cframefs_program(argc, argv);
}
