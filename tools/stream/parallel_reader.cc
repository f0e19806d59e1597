#include "tools/stream/parallel_reader.h"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include <fmt/core.h>
#include <sched.h>

#include "frame/container/chunk_reader.h"
#include "tools/lib/ordered_ring.h"
#include "tools/stream/block_decoder.h"

namespace cframefs::tools {

using codec::ByteView;
using codec::Error;
using codec::Result;
using frame::ChunkNumber;
using frame::ChunkReader;
using frame::Container;
using frame::FlatOffset;

namespace {

constexpr std::uint64_t kJobBytes = std::uint64_t{2} << 20;
constexpr std::uint32_t kJobChunks = 1024;  // bounds the open readers of a job if chunks are tiny
constexpr unsigned kJobsPerWorker = 3;

/// Bytes [begin, end) of one chunk.
struct Part {
  ChunkNumber chunk;
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  std::shared_ptr<const ChunkReader> reader;  // shared by the jobs of one large chunk; null: the worker opens it
};

struct Job {
  std::vector<Part> parts;
  std::uint64_t size = 0;
};

/// Cuts the range into jobs. A chunk that cannot be opened becomes a job that fails when its turn comes.
class Planner {
 public:
  Planner(const Container& container, FlatOffset begin, std::uint64_t length)
      : container_(container), at_(begin.value), end_(begin.value + length) {}

  bool finished() const { return at_ == end_; }

  /// REQUIRES: !finished().
  Result<Job> next() {
    Job job;
    while (!finished() && job.parts.size() < kJobChunks) {
      const auto span = container_.chunk_at(FlatOffset{at_});
      if (!span) {
        // Return the parts before the error first; the next call returns the error.
        if (job.parts.empty()) return codec::Failure(span.error());
        return job;
      }
      const auto inner = static_cast<std::uint32_t>(at_ - span->begin.value);
      const std::uint64_t inner_end = std::min<std::uint64_t>(span->nbytes, end_ - span->begin.value);
      Part part{span->chunk, inner, static_cast<std::uint32_t>(inner_end), nullptr};
      const bool large = span->nbytes > 2 * kJobBytes;
      if (!job.parts.empty() && (large || job.size + (part.end - part.begin) > kJobBytes)) break;
      if (large) cut(part);
      job.size += part.end - part.begin;
      at_ += part.end - part.begin;
      job.parts.push_back(std::move(part));
      if (large || job.size >= kJobBytes) break;
    }
    return job;
  }

 private:
  /// Shortens a part of a large chunk to about kJobBytes, up to the end of a block.
  void cut(Part& part) {
    if (!large_ || large_->chunk() != part.chunk) {
      auto reader = ChunkReader::open(container_, part.chunk, codec::ByteRange{part.begin, part.end});
      large_ = reader ? *reader : nullptr;
    }
    const std::uint64_t enough = std::min<std::uint64_t>(part.end, part.begin + kJobBytes);
    // If the chunk cannot be opened, or is too short, the worker gets the error again and reports it.
    const bool sound = large_ && part.end <= large_->decoder().nbytes();
    if (sound) part.reader = large_;
    const auto block_end = [&] {
      const auto& decoder = large_->decoder();
      return decoder.block_range(decoder.block_at(static_cast<std::uint32_t>(enough - 1))).end;
    };
    part.end = static_cast<std::uint32_t>(sound ? std::min<std::uint64_t>(part.end, block_end()) : enough);
  }

  const Container& container_;
  std::uint64_t at_;
  const std::uint64_t end_;
  std::shared_ptr<const ChunkReader> large_;
};

/// The result of decoding a job: the number of good bytes, and the error that follows them.
struct Outcome {
  std::uint64_t good = 0;
  std::optional<Error> error;
};

Result<void> decode_part(const Container& container, const Part& part, BlockDecoder& decoder, codec::ByteSpan out) {
  auto reader = part.reader;
  if (!reader) {
    auto opened = ChunkReader::open(container, part.chunk, codec::ByteRange{part.begin, part.end});
    if (!opened) return codec::Failure(opened.error());
    reader = *opened;
  }
  if (part.end > reader->decoder().nbytes()) {
    Error error{codec::ErrorKind::corruption, 0,
                fmt::format("the chunk has {} bytes, the frame needs {}", reader->decoder().nbytes(), part.end)};
    error.chunk = part.chunk.value;
    return codec::Failure(error);
  }
  return decoder.decode(*reader, part.begin, out);
}

Outcome decode_job(const Container& container, const Job& job, BlockDecoder& decoder, codec::ByteSpan out) {
  Outcome outcome;
  for (const Part& part : job.parts) {
    const std::uint64_t size = part.end - part.begin;
    if (auto decoded = decode_part(container, part, decoder, out.subspan(outcome.good, size)); !decoded) {
      outcome.error = decoded.error();
      break;
    }
    outcome.good += size;
  }
  return outcome;
}

struct Slot {
  Job job;
  RawBuffer buffer;
  Outcome outcome;
};

/// Passes the good bytes of the oldest job to the sink.
Result<void> consume(Slot& slot, const Sink& sink) {
  if (auto taken = sink(slot.buffer.of(slot.job.size).first(slot.outcome.good)); !taken) return taken;
  if (slot.outcome.error) return codec::Failure(*slot.outcome.error);
  return {};
}

}  // namespace

Result<void> stream_flat(const Container& container, FlatOffset begin, std::uint64_t length, unsigned workers,
                         const Sink& sink, const std::atomic<bool>& stop) {
  Planner planner(container, begin, length);
  workers = std::max(workers, 1U);
  OrderedRing<Slot, BlockDecoder> ring(
      workers, std::size_t{workers} * kJobsPerWorker, [&container](BlockDecoder& decoder, Slot& slot) {
        slot.outcome = decode_job(container, slot.job, decoder, slot.buffer.of(slot.job.size));
      });
  std::optional<Error> broken;  // the error that ended planning
  for (;;) {
    if (stop.load()) return codec::io_error(EINTR, "read");
    while (!broken && !planner.finished() && !ring.full()) {
      auto job = planner.next();
      if (job) {
        ring.free().job = std::move(*job);
        ring.push();
      } else {
        broken = job.error();
      }
    }
    if (ring.empty()) break;
    if (auto consumed = consume(ring.oldest(), sink); !consumed) return consumed;
    ring.release();
  }
  if (broken) return codec::Failure(*broken);
  return {};
}

unsigned available_workers() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return std::max(std::thread::hardware_concurrency(), 1U);
  return static_cast<unsigned>(std::max(CPU_COUNT(&set), 1));
}

}  // namespace cframefs::tools
