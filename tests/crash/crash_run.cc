#include "tests/crash/crash_run.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "frame/cframe/sparse_frame.h"
#include "frame/open/open.h"
#include "frame/write/frame_space.h"
#include "tests/support/frame_builder.h"
#include "tests/support/reading.h"

namespace cframefs::test {

using codec::Result;

namespace {

/// Larger than a sector, so that power cuts tear chunks.
constexpr std::int32_t kChunk = 700;

std::uint64_t hash_of(const std::vector<std::uint8_t>& bytes) {
  return std::hash<std::string_view>()({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

std::uint64_t hash_of(const FrameModel& model) {
  std::uint64_t hash = hash_of(model.plain);
  for (const auto* layers : {&model.vlmetalayers, &model.metalayers}) {
    hash = hash * 31 + layers->size();
    for (const auto& [name, content] : *layers)
      hash = hash * 31 + std::hash<std::string>()(name) * 7 + hash_of(content);
  }
  return hash;
}

std::uint64_t hash_of(const DiskImage& image) {
  std::uint64_t hash = image.size();
  for (const auto& [name, bytes] : image)
    hash = hash * 31 + std::hash<std::string>()(name) + hash_of(bytes);
  return hash;
}

bool is_sparse(const DiskImage& image) {
  return image.contains(frame::kSparseIndexName);
}

Result<std::shared_ptr<const frame::Container>> open_directory(SimulatedDisk& disk) {
  const auto fd = disk.open_at(SimulatedDisk::kDirectory, ".", 0);
  if (!fd) return codec::Failure(fd.error());
  return frame::open_container(disk, std::make_shared<const frame::Descriptor>(disk, *fd), nullptr);
}

}  // namespace

std::string describe(const Script& script) {
  static constexpr const char* steps[] = {"write inside", "append part", "append chunks",   "extend",        "truncate",
                                          "empty",        "punch",       "set vlmetalayer", "set metalayer", "compact"};
  static constexpr const char* afters[] = {"", " (ordered)", " (durable)"};
  std::string text;
  for (const ScriptLine& line : script) {
    if (!text.empty()) text += ", ";
    text += steps[static_cast<std::size_t>(line.step)];
    text += afters[static_cast<std::size_t>(line.after)];
  }
  return text;
}

Judge::Reading Judge::kept_once(FrameModel model) {
  Reading& kept = models_[hash_of(model)];
  if (!kept || *kept != model) kept = std::make_shared<const FrameModel>(std::move(model));
  return kept;
}

std::string Judge::judge(const DiskImage& image, const std::vector<FrameModel>& allowed, std::size_t first_allowed) {
  ++states_;
  const bool sparse = is_sparse(image);
  const auto found = image.find(kFrameName);
  if (!sparse && found == image.end()) return "the frame is gone";
  const auto [known, is_new] = readings_.try_emplace(sparse ? hash_of(image) : hash_of(found->second));
  if (is_new) {
    SimulatedDisk directory(image);  // must outlive the container
    const auto opened = sparse ? open_directory(directory) : open_frame(found->second);
    if (!opened) return "it does not open: " + codec::describe(opened.error());
    auto read = read_model(**opened);
    if (!read) return "it cannot be read: " + codec::describe(read.error());
    known->second = kept_once(std::move(*read));
  }
  const Reading reading = known->second;
  if (!reading) return "it could not be read before";
  for (std::size_t i = first_allowed; i < allowed.size(); ++i) {
    if (*reading != allowed[i]) continue;
    if (is_new && on_new_state) on_new_state(image, *reading);
    return {};
  }
  for (std::size_t i = 0; i < first_allowed; ++i) {
    if (*reading == allowed[i]) return "it holds a state from before the last durable one";
  }
  return "it holds what was never committed";
}

StartingFrame::StartingFrame(Kind kind) {
  model.chunksize = kChunk;
  model.plain = pattern(kChunk * 5 / 2, 1);
  FrameBuilder builder = plain_frame(model.plain, kChunk);
  if (kind == Kind::contiguous) {
    image[kFrameName] = builder.build();
    return;
  }
  builder.frame_type = 1;
  builder.cbytes = static_cast<std::int64_t>(std::exchange(builder.chunk_section, {}).size());
  builder.index = plain_index({0, 1, 2});
  image[frame::kSparseIndexName] = builder.build();
  for (std::int64_t chunk = 0; chunk < 3; ++chunk) {
    const auto begin = static_cast<std::size_t>(chunk * kChunk);
    const auto size = std::min<std::size_t>(kChunk, model.plain.size() - begin);
    image[*frame::chunk_file_name(chunk)] = plain_chunk(codec::ByteView(model.plain).subspan(begin, size));
  }
}

CrashRun::CrashRun(Judge& judge, const DiskImage& image, FrameModel model)
    : judge_(judge),
      sparse_(is_sparse(image)),
      disk_(image, sparse_ ? kFrameName : ""),
      model_(std::move(model)),
      states_{model_} {
  disk_.before_sync([this] {
    if (watching_) look();
  });
}

Result<void> CrashRun::open() {
  writer_.reset();
  auto opened = frame::FrameWriter::open(files_, SimulatedDisk::kDirectory, kFrameName, nullptr);
  if (!opened) return codec::Failure(opened.error());
  writer_ = std::move(*opened);
  return {};
}

Result<void> CrashRun::write(std::size_t at, std::size_t size) {
  return model_.write(*writer_, at, pattern(size, ++seed_));
}

Result<void> CrashRun::step(Step step) {
  const std::size_t size = model_.plain.size();
  switch (step) {
    case Step::write_inside:
      return write(std::min<std::size_t>(size, 500), 300);
    case Step::append_part:
      return write(size, 200);
    case Step::append_chunks:
      return write(size, 1500);
    case Step::extend:
      return model_.resize(*writer_, size + 2000);
    case Step::truncate:
      return model_.resize(*writer_, size - std::min<std::size_t>(size, 900));
    case Step::empty:
      return model_.resize(*writer_, 0);
    case Step::punch:
      model_.zero(*writer_, 0, 2);
      return {};
    case Step::set_vlmetalayer:
      return model_.set_vlmetalayer(*writer_, "notes", pattern(60, ++seed_));
    case Step::set_metalayer:
      return model_.set_metalayer(*writer_, "units", pattern(24, ++seed_));
    case Step::compact:
      return commit_as([this] { return frame::FrameSpace(*writer_).compact(); }, true);
  }
  return codec::invalid("no such step");
}

Result<void> CrashRun::commit_as(const std::function<Result<void>()>& commit, bool durable) {
  if (readers_kept_ > 0) {
    const FrameModel& committed = states_.back();
    readers_.push_back({writer_->container(), committed});
    if (readers_.size() > readers_kept_) readers_.pop_front();
  }
  states_.push_back(model_);
  auto done = commit();
  if (done && durable) durable_ = states_.size() - 1;
  check_readers();
  if (!done || !punches_) return done;
  const auto punched = frame::FrameSpace(*writer_).punch_dead_bytes();
  if (!punched) return codec::Failure(punched.error());
  punched_bytes_ += *punched;
  if (*punched > 0) durable_ = states_.size() - 1;
  look_without_cut();
  return done;
}

void CrashRun::check_readers() {
  for (std::size_t i = 0; i < readers_.size() && failure_.empty(); ++i) {
    const auto read = read_model(*readers_[i].state);
    if (!read) {
      failure_ = "a reader of an older state gets: " + codec::describe(read.error());
    } else if (*read != readers_[i].model) {
      failure_ = "a reader of an older state gets bytes of another one";
    }
  }
}

Result<void> CrashRun::commit(After after) {
  if (after == After::nothing) return {};
  const bool durable = after == After::durable;
  const auto wanted = durable ? frame::Durability::durable : frame::Durability::ordered;
  return commit_as([this, wanted] { return writer_->commit(wanted); }, durable);
}

Result<void> CrashRun::run(const ScriptLine& line) {
  if (auto done = step(line.step); !done) return done;
  return commit(line.after);
}

Result<void> CrashRun::run(const Script& script) {
  for (const ScriptLine& line : script) {
    if (auto done = run(line); !done) return done;
  }
  look();
  return {};
}

void CrashRun::look() {
  if (!failure_.empty()) return;
  disk_.crash_images(sparse_ ? "" : kFrameName, [this](const DiskImage& image) {
    if (failure_.empty()) failure_ = judge_.judge(image, states_, durable_);
  });
}

void CrashRun::look_without_cut() {
  if (failure_.empty()) failure_ = judge_.judge(disk_.now(), states_, durable_);
}

}  // namespace cframefs::test
