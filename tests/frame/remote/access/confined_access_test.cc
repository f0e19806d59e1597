// Credentials in a process that has given up its rights: which files and addresses it needs, and what others do for it.
#include <cerrno>
#include <cstdlib>

#include <fcntl.h>
#include <gtest/gtest.h>

#include "frame/remote/access/aws_profile.h"
#include "frame/remote/access/local_credentials.h"
#include "frame/remote/access/service_credentials.h"
#include "frame/remote/access/system_surroundings.h"
#include "tests/support/fake_surroundings.h"
#include "tests/support/temp_dir.h"

namespace cframefs::test {
namespace {

using Texts = std::vector<std::string>;

TEST(ConfinedAccess, TheFilesOfAProfileAreThoseOfTheEnvironmentOrTheHome) {
  FakeSurroundings surroundings;
  EXPECT_EQ(frame::aws_files(surroundings), (Texts{"/home/user/.aws/credentials", "/home/user/.aws/config"}));
  surroundings.variables["AWS_CONFIG_FILE"] = "/else/where";
  EXPECT_EQ(frame::aws_files(surroundings), (Texts{"/home/user/.aws/credentials", "/else/where"}));
}

TEST(ConfinedAccess, TheAddressesOfServicesAreThoseOfTheEnvironment) {
  FakeSurroundings surroundings;
  EXPECT_EQ(frame::credential_addresses(surroundings),
            (Texts{"https://sts.us-east-1.amazonaws.com/", "http://169.254.169.254"}));
  surroundings.variables["AWS_ENDPOINT_URL_STS"] = "https://sts.example:8443";
  surroundings.variables["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = "http://127.0.0.1:911/get";
  surroundings.variables["AWS_EC2_METADATA_SERVICE_ENDPOINT"] = "http://10.0.0.1:1338";
  EXPECT_EQ(frame::credential_addresses(surroundings),
            (Texts{"https://sts.example:8443/", "http://127.0.0.1:911/get", "http://10.0.0.1:1338"}));
}

TEST(ConfinedAccess, TheProgramOfTheProfileIsRun) {
  FakeSurroundings surroundings;
  surroundings.files["/home/user/.aws/config"] =
      "[profile p]\ncredential_process = tool --for 'p q'\n[profile none]\nregion = x\n";
  surroundings.programs["tool"] = [](const Texts& command) {
    EXPECT_EQ(command, (Texts{"tool", "--for", "p q"}));
    return std::string("printed");
  };
  const auto output = frame::output_of_credential_process(surroundings, "p");
  ASSERT_TRUE(output) << output.error().reason;
  EXPECT_EQ(*output, "printed");
  EXPECT_EQ(frame::output_of_credential_process(surroundings, "none").error().sys, ENOENT);
  EXPECT_FALSE(frame::output_of_credential_process(surroundings, "missing"));
}

TEST(ConfinedAccess, FilesAreOpenedAndProgramsRunByOthers) {
  const TempDir dir;
  const std::vector<std::uint8_t> bytes = {'t', 'o', 'k', 'e', 'n'};
  const std::string real = dir.write("real", bytes).string();
  ASSERT_EQ(::chmod(real.c_str(), 0644), 0);
  frame::SystemSurroundings surroundings;
  const std::string home = surroundings.home();
  const auto before = surroundings.variable("HOME");
  surroundings.confine(
      [&real](const std::string& path) -> codec::Result<int> {
        if (path != "/known") return codec::io_error(EACCES, "open");
        return ::open(real.c_str(), O_RDONLY | O_CLOEXEC);
      },
      [] { return std::string("printed by another process"); });
  EXPECT_EQ(surroundings.file("/known").value(), "token");
  EXPECT_TRUE(surroundings.is_readable_by_others("/known").value());
  EXPECT_EQ(surroundings.file(real).error().sys, EACCES);
  EXPECT_NE(surroundings.file(real).error().reason.find(real), std::string::npos);
  EXPECT_EQ(surroundings.is_readable_by_others(real).error().sys, EACCES);
  EXPECT_EQ(surroundings.output_of({"/no/such/program"}).value(), "printed by another process");
  // NOLINTBEGIN(concurrency-mt-unsafe): no other thread reads the environment
  ::setenv("HOME", "/changed", 1);
  EXPECT_EQ(surroundings.home(), home);
  if (before) ::setenv("HOME", before->c_str(), 1);
  // NOLINTEND(concurrency-mt-unsafe)
}

}  // namespace
}  // namespace cframefs::test
