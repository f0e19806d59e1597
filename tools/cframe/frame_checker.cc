#include "tools/cframe/frame_checker.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "frame/array/array_view.h"
#include "frame/base/parse_budget.h"
#include "frame/cframe/frame_container.h"
#include "frame/container/chunk_reader.h"
#include "tools/cframe/cframe.h"
#include "tools/lib/first_errors.h"
#include "tools/lib/recent_runs.h"
#include "tools/lib/server_paths.h"
#include "tools/stream/block_decoder.h"

namespace cframefs::tools {

using codec::Error;
using frame::ChunkNumber;

namespace {

constexpr std::uint64_t kTaskBytes = std::uint64_t{4} << 20;
constexpr std::int64_t kTaskChunks = 256;
/// Approximate limit of tasks for one frame: with very many chunks a task has more of them.
constexpr std::int64_t kMaxTasks = 4096;
constexpr std::int64_t kManyTogether = 128 << 10;
constexpr std::size_t kTasksPerWorker = 4;
/// Memory of all workers together for large blocks; a larger block is decoded alone.
constexpr std::uint64_t kLargeBlockBytes = std::uint64_t{40} << 20;
/// add() checks a frame up to this size itself: waking a worker takes longer.
constexpr std::uint64_t kSmallBytes = std::uint64_t{64} << 10;
constexpr std::int64_t kSmallChunks = 16;
constexpr auto kIdleInterval = std::chrono::milliseconds(100);

std::int64_t chunks_per_task(const frame::Container& container) {
  const std::int32_t chunksize = container.parameters().chunksize;
  const std::int64_t fitting = chunksize > 0 ? static_cast<std::int64_t>(kTaskBytes) / chunksize : 16;
  const std::int64_t step =
      std::max(std::clamp<std::int64_t>(fitting, 1, kTaskChunks), container.chunk_count() / kMaxTasks);
  // Chunks that are decoded together and exceed the caches must be in one task: each task would decode them again.
  const std::int64_t together = container.chunks_decoded_together();
  return together > kManyTogether ? (step + together - 1) / together * together : step;
}

}  // namespace

/// The result of checking a chunk.
struct FrameChecker::Verdict {
  std::optional<Error> error;
};

/// One frame during the check. The last task closes the container and with it the file.
struct FrameChecker::File {
  CheckReport report;
  std::shared_ptr<const frame::Container> container;
  std::uint64_t stored_bytes = 0;
  std::atomic<std::uint64_t> counted_bytes = 0;
  std::atomic<std::int64_t> pending = 1;  // unfinished tasks, and 1 for add()
  std::atomic<bool> complete = false;
  std::mutex mutex;
  FirstErrors errors{CheckReport::kMaxErrors};  // guarded by mutex until complete

  void note(Error error, std::optional<std::int64_t> chunk) {
    if (error.path.empty()) error.path = report.path;
    if (chunk && !error.chunk) error.chunk = chunk;
    const std::lock_guard lock(mutex);
    errors.add(std::move(error));
  }

  /// Notes the error for each chunk of a run.
  void note(Error error, const frame::ChunkRun& run) {
    if (error.path.empty()) error.path = report.path;
    const std::lock_guard lock(mutex);
    for (std::int64_t i = 0; i < run.count; ++i) {
      error.chunk = run.first.value + i * run.step;
      if (errors.add(error)) continue;
      errors.add_unlisted(error.kind, static_cast<std::uint64_t>(run.count - i - 1));
      return;
    }
  }
};

FrameChecker::FrameChecker(unsigned workers, const std::atomic<bool>& stop, std::function<void()> idle)
    : stop_(stop),
      idle_(std::move(idle)),
      queue_bound_(kTasksPerWorker * std::max(workers, 1U)),
      large_blocks_(kLargeBlockBytes, std::max(workers, 1U)),
      own_(std::make_unique<BlockDecoder>(&large_blocks_)) {
  for (unsigned i = 0; i < std::max(workers, 1U); ++i)
    threads_.emplace_back([this] { work(); });
}

FrameChecker::~FrameChecker() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    queue_.clear();
  }
  wanted_.notify_all();
  for (auto& thread : threads_)
    thread.join();
}

void FrameChecker::add(const FrameFile& input, std::uint64_t offset) {
  auto file = std::make_shared<File>();
  file->report.path = shown_path(input.path);
  file->stored_bytes = input.stored_bytes;
  files_.push_back(file);
  auto container = open_frame(InputFile(input.path), offset);
  if (container) {
    file->container = *container;
    const auto& parameters = (*container)->parameters();
    file->report.kind = parameters.kind;
    file->report.nbytes = parameters.nbytes;
    file->report.chunks = (*container)->chunk_count();
    // make_view() checks that the chunks fit the shape of an array.
    const auto view = frame::make_view(*container, frame::ArrayForm::npy, input.path.ends_with(".b2nd"));
    if (!view) {
      file->note(view.error(), std::nullopt);
    } else if (const auto& damage = (*container)->metalayer_damage()) {
      file->note(*damage, std::nullopt);
    }
    check_seal(*file);
    const std::int64_t step = chunks_per_task(**container);
    const bool is_small = file->stored_bytes <= kSmallBytes && file->report.nbytes <= kSmallBytes &&
                          file->report.chunks <= kSmallChunks && (*container)->vlmetalayer_names().empty();
    const auto submit = [&](const Task& task) { is_small ? run(*own_, task) : push(task); };
    submit({file, 0, 0, true});
    for (std::int64_t begin = 0; begin < file->report.chunks && !stop_.load(); begin += step) {
      submit({file, begin, std::min(begin + step, file->report.chunks), false});
    }
  } else {
    file->note(container.error(), std::nullopt);
  }
  if (--file->pending == 0) complete(*file);
}

void FrameChecker::check_seal(File& file) {
  const frame::FrameContainer* const frame = file.container->as_frame();
  const bool can_be_sealed =
      frame != nullptr && file.report.chunks > 0 &&
      (file.report.kind == frame::ContainerKind::cframe || file.report.kind == frame::ContainerKind::sframe);
  if (!can_be_sealed) return;
  file.report.seal = CheckReport::Seal::missing;
  if (!frame->seal()) return;
  const auto holds = frame->seal()->holds();
  if (!holds) return file.note(holds.error(), std::nullopt);
  file.report.seal = *holds ? CheckReport::Seal::holds : CheckReport::Seal::broken;
  const auto damaged = frame->seal()->damaged_pages();
  if (!damaged) return file.note(damaged.error(), std::nullopt);
  for (const std::int64_t chunk : *damaged)
    file.note(codec::corrupt("the digests from this chunk on are damaged").value(), chunk);
}

void FrameChecker::finish() {
  std::unique_lock lock(mutex_);
  wait(lock, [this] { return queue_.empty() && running_ == 0; });
}

std::vector<CheckReport> FrameChecker::take_reports() {
  std::vector<CheckReport> reports;
  while (!files_.empty() && files_.front()->complete.load()) {
    reports.push_back(std::move(files_.front()->report));
    files_.pop_front();
  }
  return reports;
}

template <class CondVar>
void FrameChecker::wait(std::unique_lock<std::mutex>& lock, CondVar condition) {
  while (!stop_.load() && !progressed_.wait_for(lock, kIdleInterval, condition)) {
    lock.unlock();
    idle_();
    lock.lock();
  }
}

void FrameChecker::push(Task task) {
  ++task.file->pending;
  {
    std::unique_lock lock(mutex_);
    wait(lock, [this] { return queue_.size() < queue_bound_; });
    queue_.push_back(std::move(task));
  }
  wanted_.notify_one();
}

void FrameChecker::work() {
  BlockDecoder decoder(&large_blocks_);
  std::unique_lock lock(mutex_);
  for (;;) {
    wanted_.wait(lock, [this] { return closed_ || !queue_.empty(); });
    if (closed_) return;
    Task task = std::move(queue_.front());
    queue_.pop_front();
    ++running_;
    lock.unlock();
    run(decoder, task);
    if (--task.file->pending == 0) complete(*task.file);
    task.file.reset();
    lock.lock();
    --running_;
    progressed_.notify_one();
  }
}

void FrameChecker::run(BlockDecoder& decoder, const Task& task) {
  File& file = *task.file;
  if (task.metalayers) {
    if (const auto& damage = file.container->vlmetalayer_damage()) file.note(*damage, std::nullopt);
    auto budget = frame::ParseBudget::asked(file.container->stored_bytes());
    for (const auto& name : file.container->vlmetalayer_names()) {
      if (const auto checked = file.container->check_vlmetalayer(name, budget); !checked) {
        Error error = checked.error();
        error.reason = "variable-length metalayer '" + name + "': " + error.reason;
        file.note(std::move(error), std::nullopt);
      }
    }
    return;
  }
  check_runs(decoder, file, *file.container->runs(ChunkNumber{task.begin}, ChunkNumber{task.end}));
}

/// Checks runs of chunks; a chunk that the index names repeatedly is decoded once.
void FrameChecker::check_runs(BlockDecoder& decoder, File& file, frame::ChunkRuns& runs) {
  RecentRuns<Verdict> known;
  frame::ChunkRun run;
  while (!stop_.load(std::memory_order_relaxed)) {
    const auto more = runs.next(run);
    if (!more) file.note(more.error(), std::nullopt);
    if (!more || !*more) return;
    if (run.damage != nullptr) {
      file.note(*run.damage, run);
      continue;
    }
    auto& slot = known.slot(run.same);
    if (!slot.value || slot.same != run.same || !run.alike) {
      slot.value = check_chunk(decoder, file, run.first);
      slot.same = run.same;
    }
    if (slot.value->error) file.note(*slot.value->error, run);
    if (!run.alike) slot.value.reset();
  }
}

FrameChecker::Verdict FrameChecker::check_chunk(BlockDecoder& decoder, File& file, ChunkNumber chunk) {
  const auto reader = frame::ChunkReader::open(*file.container, chunk);
  if (!reader) return {reader.error()};
  Verdict verdict;
  if (auto checked = decoder.check(**reader); !checked) verdict.error = checked.error();
  // Progress never exceeds the size of the file, even if chunks claim more.
  const auto& header = (*reader)->decoder().header();
  const std::uint64_t before = file.counted_bytes.fetch_add(static_cast<std::uint64_t>(header.cbytes));
  if (before < file.stored_bytes) {
    bytes_done_ += std::min(static_cast<std::uint64_t>(header.cbytes), file.stored_bytes - before);
  }
  return verdict;
}

void FrameChecker::complete(File& file) {
  if (file.container && file.errors.count() == 0 && file.container->parameters().chunksize == 0 &&
      file.report.nbytes > 0 && !stop_.load()) {
    // For chunks of different sizes, check that their sum is the frame's length.
    const auto last = file.container->chunk_at(frame::FlatOffset{file.report.nbytes - 1});
    if (!last) file.note(last.error(), std::nullopt);
  }
  file.container.reset();
  CheckReport& report = file.report;
  report.errors = file.errors.release();
  report.further_errors = file.errors.count() - report.errors.size();
  report.has_io_error = file.errors.has(codec::ErrorKind::io);
  report.has_unsupported = file.errors.has(codec::ErrorKind::unsupported);
  const std::uint64_t counted = std::min(file.counted_bytes.load(), file.stored_bytes);
  bytes_done_ += file.stored_bytes - counted;
  file.complete.store(true);
}

}  // namespace cframefs::tools
