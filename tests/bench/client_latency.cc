// How long requests of each kind wait while other programs do what they do. Each kind has a thread of its own, which
// asks, pauses and asks again: what one of them waits for keeps no other from asking.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "tests/bench/client_commands.h"
#include "tests/bench/client_measure.h"

namespace cframefs::bench {
namespace {

constexpr std::uint64_t kColdPlace = 8192;

struct Question {
  std::string name;
  std::function<void(std::uint64_t round)> prepare;  // is not timed
  std::function<void(std::uint64_t round)> ask;
};

/// What one thread has measured so far.
struct Answers {
  std::vector<double> seconds;
  double asked_at = 0;  // 0: it is not waiting for an answer
  std::string error;
  bool finished = false;
};

/// Outlives the measurement, which does not wait for ever for a thread that gets no answer.
struct Shared {
  std::mutex mutex;
  std::map<std::string, Answers> answers;
  double end = 0;
  std::chrono::microseconds pause{};
};

std::vector<std::string> paths_in(const std::string& directory) {
  std::vector<std::string> paths;
  DIR* const dir = ::opendir(directory.c_str());
  if (dir == nullptr) fail("opendir " + directory);
  while (const dirent* entry = ::readdir(dir)) {
    if (entry->d_name[0] != '.') paths.push_back(directory + "/" + entry->d_name);
  }
  ::closedir(dir);
  if (paths.empty()) throw std::runtime_error(directory + " is empty");
  return paths;
}

void ask_attributes(const std::string& path) {
  struct statx attributes {};
  if (::statx(AT_FDCWD, path.c_str(), AT_STATX_FORCE_SYNC, STATX_BASIC_STATS, &attributes) != 0) fail("stat " + path);
}

void read_page(const File& file, std::uint64_t place) {
  std::vector<std::byte> page(kPage);
  if (file.read_at(page, place) != kPage) throw std::runtime_error("short read");
}

/// `mount` has directories small (20 files), names and cold, whose files are not used otherwise.
std::vector<Question> questions_for(const std::string& mount) {
  const auto nothing = [](std::uint64_t) {};
  const auto small = paths_in(mount + "/small");
  const auto names = paths_in(mount + "/names");
  const auto cold = paths_in(mount + "/cold");
  const auto warm = std::make_shared<File>(small.at(1));
  const auto drop_pages = [warm](std::uint64_t) { ::posix_fadvise(warm->fd(), 0, 0, POSIX_FADV_DONTNEED); };
  ::posix_fadvise(warm->fd(), 0, 0, POSIX_FADV_RANDOM);
  read_page(*warm, 0);
  const int log = ::open((mount + "/log").c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0644);
  if (log < 0) fail("open of the log");
  return {
      {"stat", nothing, [path = small.at(0)](std::uint64_t) { ask_attributes(path); }},
      {"lookup", nothing, [names](std::uint64_t round) { ask_attributes(names[round % names.size()]); }},
      {"df", nothing,
       [mount](std::uint64_t) {
         struct statvfs status {};
         if (::statvfs(mount.c_str(), &status) != 0) fail("statvfs");
       }},
      {"ls of 20", nothing, [mount](std::uint64_t) { paths_in(mount + "/small"); }},
      {"read, warm block", drop_pages, [warm](std::uint64_t) { read_page(*warm, 0); }},
      {"read, cold file", nothing,
       [cold](std::uint64_t round) { read_page(File(cold[round % cold.size()]), kColdPlace); }},
      {"write of 10", nothing,
       [log](std::uint64_t) {
         if (::write(log, "123456789\n", 10) != 10) fail("write");
       }},
  };
}

void ask_until_end(const std::shared_ptr<Shared>& shared, const Question& question) {
  for (std::uint64_t round = 0; monotonic_seconds() < shared->end; ++round) {
    question.prepare(round);
    const double before = monotonic_seconds();
    {
      const std::lock_guard lock(shared->mutex);
      shared->answers[question.name].asked_at = before;
    }
    question.ask(round);
    const double after = monotonic_seconds();
    {
      const std::lock_guard lock(shared->mutex);
      Answers& answers = shared->answers[question.name];
      answers.seconds.push_back(after - before);
      answers.asked_at = 0;
    }
    std::this_thread::sleep_for(shared->pause);
  }
}

void ask(const std::shared_ptr<Shared>& shared, const Question& question) {
  std::string error;
  try {
    ask_until_end(shared, question);
  } catch (const std::exception& thrown) {
    error = thrown.what();
  }
  const std::lock_guard lock(shared->mutex);
  Answers& answers = shared->answers[question.name];
  answers.error = error;
  answers.finished = true;
}

bool all_finished(Shared& shared) {
  const std::lock_guard lock(shared.mutex);
  return std::all_of(shared.answers.begin(), shared.answers.end(),
                     [](const auto& named) { return named.second.finished; });
}

/// What is known before the slow requests begin is known; a line or the end of standard input lets the asking begin.
void wait_for_word() {
  std::puts("ready");
  std::fflush(stdout);
  for (int letter = std::getchar(); letter != EOF && letter != '\n';)
    letter = std::getchar();
}

nlohmann::json report_of(Answers answers) {
  // What is still waited for counts as long as it has been.
  const bool waits = !answers.finished && answers.asked_at != 0;
  if (waits) answers.seconds.push_back(monotonic_seconds() - answers.asked_at);
  nlohmann::json report = quantiles(answers.seconds);
  report["count"] = answers.seconds.size();
  report["unanswered"] = waits;
  if (!answers.error.empty()) report["error"] = answers.error;
  return report;
}

}  // namespace

nlohmann::json latency(const Options& options) {
  const auto shared = std::make_shared<Shared>();
  const std::vector<Question> questions = questions_for(options.paths.front());
  for (const Question& question : questions)
    shared->answers[question.name] = {};
  shared->pause = std::chrono::microseconds(static_cast<std::int64_t>(options.pause * 1e6));
  wait_for_word();
  shared->end = monotonic_seconds() + options.seconds;
  for (const Question& question : questions)
    std::thread([shared, question] { ask(shared, question); }).detach();
  while (!all_finished(*shared) && monotonic_seconds() < shared->end + options.patience)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  nlohmann::json result;
  const std::lock_guard lock(shared->mutex);
  for (const Question& question : questions)
    result[question.name] = report_of(shared->answers[question.name]);
  return result;
}

}  // namespace cframefs::bench
