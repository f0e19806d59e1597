// Runs a program as on a kernel without Landlock: no_landlock PROGRAM ARGUMENT...
#include <cstdio>

#include <seccomp.h>
#include <unistd.h>

int main(int argc, char** argv) {
  void* const filter = seccomp_init(SCMP_ACT_ALLOW);
  // The program may still run others that change their rights, as root.
  if (argc < 2 || filter == nullptr || seccomp_attr_set(filter, SCMP_FLTATR_CTL_NNP, geteuid() == 0 ? 0 : 1) != 0 ||
      seccomp_rule_add(filter, SCMP_ACT_ERRNO(38), 444, 0) != 0 || seccomp_load(filter) != 0) {
    std::fputs("no_landlock: no filter\n", stderr);
    return 1;
  }
  execv(argv[1], argv + 1);
  std::perror(argv[1]);
  return 1;
}
