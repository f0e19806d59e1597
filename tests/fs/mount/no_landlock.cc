// Runs a program as on a kernel without Landlock: no_landlock PROGRAM ARGUMENT... REFUSED_CALL in the environment: the
// number of the system call that is missing, in place of 444, landlock_create_ruleset.
#include <cstdio>
#include <cstdlib>

#include <seccomp.h>
#include <unistd.h>

int main(int argc, char** argv) {
  const char* const refused = std::getenv("REFUSED_CALL");
  const int call = refused == nullptr ? 444 : static_cast<int>(std::strtol(refused, nullptr, 10));
  void* const filter = seccomp_init(SCMP_ACT_ALLOW);
  // The program may still run others that change their rights, as root.
  if (argc < 2 || filter == nullptr || seccomp_attr_set(filter, SCMP_FLTATR_CTL_NNP, geteuid() == 0 ? 0 : 1) != 0 ||
      seccomp_rule_add(filter, SCMP_ACT_ERRNO(38), call, 0) != 0 || seccomp_load(filter) != 0) {
    std::fputs("no_landlock: no filter\n", stderr);
    return 1;
  }
  execv(argv[1], argv + 1);
  std::perror(argv[1]);
  return 1;
}
