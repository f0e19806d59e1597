#include "frame/frame_writer.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <utility>

#include <fcntl.h>

#include "frame/advisory_lock.h"
#include "frame/cframe.h"
#include "frame/live_copy.h"
#include "frame/open.h"
#include "frame/patched_source.h"
#include "frame/replacement_file.h"
#include "frame/tail_writer.h"

namespace cframefs::frame {

namespace {

using codec::Failure;
using codec::load_be;
using codec::SpecialValue;
using codec::stale;
using codec::unsupported;

using Bytes = std::vector<std::uint8_t>;

/// What one write to a disk puts there whole or not at all. The header begins at such a place.
constexpr std::size_t kSector = 512;

/// Of more chunks than these that go at once, the length is guessed from all chunks' instead of read.
constexpr std::int64_t kMostMeasured = 4096;

Result<Bytes> read_bytes(FileOps& files, int fd, FileOffset at, std::uint64_t length) {
  Bytes bytes(static_cast<std::size_t>(length));
  const auto got = files.pread(fd, bytes, at);
  if (!got) return Failure(got.error());
  if (*got < bytes.size()) return codec::corrupt("the file ends inside the frame");
  return bytes;
}

/// Whether chunks can be added to and replaced in such a frame.
Result<void> check_writable(const FrameContainer& frame, std::uint8_t general_flags, bool stores_chunks) {
  const FrameParameters& parameters = frame.parameters();
  if (parameters.kind != "cframe") return unsupported("sparse frames are not written");
  const bool variable = (general_flags & layout::kVariableChunksFlag) != 0;
  if (variable || (parameters.variable_chunks && parameters.nbytes > 0)) {
    return unsupported("frames whose chunks vary in size are not written");
  }
  if (parameters.vl_blocks) return unsupported("frames whose blocks vary in size are not written");
  if (stores_chunks) return codec::check_encodable(encode_parameters(parameters));
  return {};
}

Result<void> check_name(const std::string& name) {
  if (name.empty() || name.size() > layout::kMaxNameLength) {
    return codec::invalid("a metalayer's name has 1 to " + std::to_string(layout::kMaxNameLength) + " bytes");
  }
  return {};
}

auto find_layer(std::vector<Metalayer>& layers, const std::string& name) {
  return std::find_if(layers.begin(), layers.end(), [&name](const Metalayer& layer) { return layer.name == name; });
}

/// Gives a metalayer this content, adding it if there is none of that name.
Result<void> put_layer(std::vector<Metalayer>& layers, const std::string& name, Bytes content) {
  const auto found = find_layer(layers, name);
  if (found != layers.end()) {
    found->content = std::move(content);
    return {};
  }
  if (layers.size() >= layout::kMaxMetalayers) {
    return codec::invalid("a frame has at most " + std::to_string(layout::kMaxMetalayers) + " metalayers of a kind");
  }
  layers.push_back(Metalayer{name, std::move(content)});
  return {};
}

}  // namespace

/// A state that is written and not switched to yet.
struct FrameWriter::Next {
  Bytes header;
  std::vector<std::pair<std::int64_t, std::int64_t>> entries;  // of pending chunks, by number
  std::vector<IndexEncoder::Block> index_blocks;
  std::shared_ptr<const FrameContainer> container;
  std::shared_ptr<const Descriptor> file;
  std::uint64_t dead_bytes = 0;
};

FrameWriter::FrameWriter(FileOps& files, int dir, std::string path, std::shared_ptr<IndexCache> cache,
                         WriterOptions options)
    : files_(files),
      dir_(dir),
      path_(std::move(path)),
      cache_(cache ? std::move(cache) : std::make_shared<IndexCache>()),
      options_(options),
      ever_synced_(!options.fresh) {}

Result<std::unique_ptr<FrameWriter>> FrameWriter::open(FileOps& files, int dir, const std::string& path,
                                                       std::shared_ptr<IndexCache> cache,
                                                       const WriterOptions& options) {
  std::unique_ptr<FrameWriter> writer(new FrameWriter(files, dir, path, std::move(cache), options));
  if (auto loaded = writer->load(); !loaded) return Failure(loaded.error());
  return writer;
}

Result<void> FrameWriter::load() {
  const auto fd = files_.open_at(dir_, path_, O_RDWR | O_NONBLOCK | O_NOCTTY);
  if (!fd) {
    if (fd.error().sys == EISDIR) return unsupported("sparse frames are not written");
    return Failure(fd.error());
  }
  file_ = std::make_shared<const Descriptor>(files_, *fd);
  const auto opened = open_container(files_, file_, cache_);
  if (!opened) return Failure(opened.error());
  container_ = std::dynamic_pointer_cast<const FrameContainer>(*opened);
  if (!container_) return unsupported("only frames are written");
  auto header = read_bytes(files_, file_->fd(), FileOffset{0}, parameters().header_length);
  if (!header) return Failure(header.error());
  header_ = std::move(*header);
  if (load_be<std::uint64_t>(&header_[layout::kFrameLengthAt]) != parameters().frame_length) {
    return stale("the frame was changed while it was opened");
  }
  pending_ = PendingChanges(*container_);
  return check_writable(*container_, header_[layout::kGeneralFlagsAt], options_.stores_chunks);
}

const codec::EncodedChunk* FrameWriter::pending_chunk(ChunkNumber chunk) const {
  const auto found = pending_.chunks().find(chunk.value);
  return found == pending_.chunks().end() ? nullptr : &found->second;
}

bool FrameWriter::has_changes() const {
  return pending_.any_chunks() || vlmetalayers_ || metalayers_;
}

Result<void> FrameWriter::store(ChunkNumber chunk, codec::EncodedChunk encoded) {
  return pending_.store(chunk, std::move(encoded));
}

Result<void> FrameWriter::resize(std::uint64_t nbytes) {
  return pending_.resize(nbytes);
}

void FrameWriter::abandon() {
  pending_ = PendingChanges(*container_);
  vlmetalayers_.reset();
  metalayers_.reset();
}

void FrameWriter::moved(int dir, std::string path) {
  dir_ = dir;
  path_ = std::move(path);
}

// ---- metalayers ----

/// The variable-length metalayers as they are in the file: chunks, not decoded.
Result<std::vector<Metalayer>> FrameWriter::stored_vlmetalayers() const {
  const Trailer& trailer = container_->trailer();
  if (trailer.map.damage) return Failure(*trailer.map.damage);
  const auto bytes = read_bytes(files_, file_->fd(), FileOffset{trailer.begin}, trailer.length);
  if (!bytes) return Failure(bytes.error());
  std::vector<Metalayer> layers;
  for (const MapEntry& entry : trailer.map.entries) {
    const auto damaged = [&entry] {
      return codec::corrupt("variable-length metalayer '" + entry.name + "' is damaged");
    };
    const auto at = static_cast<std::uint64_t>(entry.offset);
    if (entry.offset < 0 || at > bytes->size() || bytes->size() - at < layout::kContentPrefix) return damaged();
    const std::uint64_t length = load_be<std::uint32_t>(&(*bytes)[at + 1]);
    if (length > bytes->size() - at - layout::kContentPrefix) return damaged();
    const ByteView content = ByteView(*bytes).subspan(at + layout::kContentPrefix, length);
    layers.push_back(Metalayer{entry.name, {content.begin(), content.end()}});
  }
  return layers;
}

Result<void> FrameWriter::set_vlmetalayer(const std::string& name, ByteView content) {
  if (auto fine = check_name(name); !fine) return fine;
  auto layers = vlmetalayers_ ? Result<std::vector<Metalayer>>(*vlmetalayers_) : stored_vlmetalayers();
  if (!layers) return Failure(layers.error());
  if (auto put = put_layer(*layers, name, metalayer_chunk(content)); !put) return put;
  vlmetalayers_ = std::move(*layers);
  return {};
}

Result<void> FrameWriter::remove_vlmetalayer(const std::string& name) {
  auto layers = vlmetalayers_ ? Result<std::vector<Metalayer>>(*vlmetalayers_) : stored_vlmetalayers();
  if (!layers) return Failure(layers.error());
  const auto found = find_layer(*layers, name);
  if (found == layers->end()) return codec::invalid("there is no variable-length metalayer '" + name + "'");
  layers->erase(found);
  vlmetalayers_ = std::move(*layers);
  return {};
}

Result<void> FrameWriter::set_metalayer(const std::string& name, ByteView content) {
  if (auto fine = check_name(name); !fine) return fine;
  if (container_->metalayer_damage()) return Failure(*container_->metalayer_damage());
  auto layers = metalayers_ ? *metalayers_ : container_->metalayers();
  if (auto put = put_layer(layers, name, {content.begin(), content.end()}); !put) return put;
  metalayers_ = std::move(layers);
  return {};
}

Bytes FrameWriter::next_header() const {
  return metalayers_ ? with_metalayers(header_, *metalayers_) : header_;
}

bool FrameWriter::next_has_vlmetalayers() const {
  return vlmetalayers_ ? !vlmetalayers_->empty() : !container_->trailer().map.entries.empty();
}

/// Places in a trailer count from its first byte, so that one that does not change is copied as it is.
Result<Bytes> FrameWriter::next_trailer() const {
  if (vlmetalayers_) return trailer_image(*vlmetalayers_);
  const Trailer& trailer = container_->trailer();
  return read_bytes(files_, file_->fd(), FileOffset{trailer.begin}, trailer.length);
}

// ---- commit ----

Result<void> FrameWriter::commit(Durability durability) {
  return commit_locked(durability, false);
}

Result<void> FrameWriter::compact() {
  return commit_locked(Durability::durable, true);
}

Result<AdvisoryLock> FrameWriter::lock() {
  const std::string side_car = has_name_ ? side_car_path(path_, false) : std::string();
  return AdvisoryLock::acquire(files_, dir_, side_car, file_->fd(), options_.lock_patience);
}

Result<void> FrameWriter::commit_locked(Durability durability, bool anew) {
  if (failed_) return codec::io_error(EIO, "commit after a sync that failed");
  if (has_changes() || anew) {
    if (auto fine = pending_.check(*container_); !fine) return fine;
    const auto held = lock();
    if (!held) return Failure(held.error());
    if (auto same = check_unchanged(); !same) return same;
    auto done = anew || needs_new_file() ? make_new_file() : append_and_switch();
    if (!done) return done;
  }
  if (durability == Durability::durable && unsynced_) return sync_all();
  return {};
}

/// Somebody who wrote without the lock shows in the header, somebody who put another file in place in the name.
Result<void> FrameWriter::check_unchanged() const {
  const auto now = read_bytes(files_, file_->fd(), FileOffset{0}, header_.size());
  if (!now) return Failure(now.error());
  if (*now != header_) return stale("somebody else changed the frame");
  if (!has_name_) return {};
  const auto ours = files_.status(file_->fd());
  if (!ours) return Failure(ours.error());
  const auto named = files_.status_at(dir_, path_);
  if (!named) {
    if (named.error().sys == ENOENT) return stale("somebody else removed the frame");
    return Failure(named.error());
  }
  if (named->st_ino != ours->st_ino || named->st_dev != ours->st_dev) return stale("somebody else replaced the frame");
  return {};
}

Result<std::uint64_t> FrameWriter::cut_tail() {
  const auto held = lock();
  if (!held) return Failure(held.error());
  if (auto same = check_unchanged(); !same) return Failure(same.error());
  const auto cut = cut_tail_locked();
  if (!cut || *cut == 0) return cut;
  if (auto synced = files_.sync(file_->fd(), false); !synced) return Failure(synced.error());
  return cut;
}

Result<std::uint64_t> FrameWriter::cut_tail_locked() {
  const std::uint64_t end = parameters().frame_length;
  const auto status = files_.status(file_->fd());
  if (!status) return Failure(status.error());
  const auto size = static_cast<std::uint64_t>(status->st_size);
  if (size <= end) return std::uint64_t{0};
  if (auto cut = files_.truncate(file_->fd(), end); !cut) return Failure(cut.error());
  return size - end;
}

bool FrameWriter::metalayers_need_new_file() const {
  return metalayers_ && (next_header().size() != header_.size() || header_.size() > kSector);
}

/// The trailer of a frame without chunks has a fixed place, and so has the chunk section.
bool FrameWriter::needs_new_file() const {
  return pending_.nbytes() == 0 || metalayers_need_new_file();
}

/// Stored bytes of the chunks that the next state does without.
Result<std::uint64_t> FrameWriter::bytes_killed() const {
  const std::int64_t count = container_->chunk_count();
  std::uint64_t bytes = 0;
  std::int64_t measured = 0;
  const auto measure = [&](std::int64_t chunk) -> Result<void> {
    const auto place = container_->place(ChunkNumber{chunk});
    if (!place) return Failure(place.error());
    if (place->special != SpecialValue::none) return {};
    // What is damaged is dead, too; how long it was nobody knows.
    if (const auto length = stored_length(*place)) bytes += *length;
    ++measured;
    return {};
  };
  std::int64_t killed = count - pending_.kept();
  for (const auto& [number, encoded] : pending_.chunks())
    killed += number < pending_.kept() ? 1 : 0;
  if (killed > kMostMeasured) {
    const auto average = parameters().cbytes / static_cast<std::uint64_t>(count);
    return average * static_cast<std::uint64_t>(killed);
  }
  for (const auto& [number, encoded] : pending_.chunks()) {
    if (number >= pending_.kept()) break;
    if (auto done = measure(number); !done) return Failure(done.error());
  }
  for (std::int64_t chunk = pending_.kept(); chunk < count; ++chunk) {
    if (auto done = measure(chunk); !done) return Failure(done.error());
  }
  return bytes;
}

/// Appends every entry of the next state's index; blocks in which nothing changes are taken as they are.
Result<void> FrameWriter::encode_index(Next& next, IndexEncoder& index) const {
  constexpr std::int64_t kBlock = IndexEncoder::kBlockEntries;
  const std::int64_t count = pending_.chunk_count();
  auto entry = next.entries.begin();
  const auto end = next.entries.end();
  for (std::int64_t chunk = 0; chunk < count;) {
    const auto changed = entry == end ? count : entry->first;
    const auto block = static_cast<std::size_t>(chunk / kBlock);
    if (chunk % kBlock == 0 && block < index_blocks_.size() && chunk + kBlock <= std::min(pending_.kept(), changed)) {
      index.append_block(index_blocks_[block]);
      chunk += kBlock;
    } else if (chunk == changed) {
      index.append(entry->second);
      ++entry;
      ++chunk;
    } else if (chunk < pending_.kept()) {
      const auto kept = container_->index_entry(ChunkNumber{chunk});
      if (!kept) return Failure(kept.error());
      index.append(*kept);
      ++chunk;
    } else {
      index.append_run(layout::kZerosEntry, changed - chunk);
      chunk = changed;
    }
  }
  return {};
}

/// Steps 2 and 3: chunks, index and trailer behind the frame's end. `next.header` is ready to be written afterwards.
Result<void> FrameWriter::write_behind(Next& next) {
  const std::uint64_t section = header_.size();
  TailWriter out(files_, file_->fd(), FileOffset{parameters().frame_length});
  for (const auto& [number, encoded] : pending_.chunks()) {
    const bool stored = encoded.special == SpecialValue::none;
    next.entries.emplace_back(
        number, stored ? static_cast<std::int64_t>(out.position() - section) : special_entry_of(encoded.special));
    if (auto put = out.append(encoded.bytes); !put) return put;
  }
  IndexEncoder index;
  if (auto done = encode_index(next, index); !done) return done;
  return finish_image(next, section, index, out);
}

/// Index and trailer, and the header that goes with them.
Result<void> FrameWriter::finish_image(Next& next, std::uint64_t section, IndexEncoder& index, TailWriter& out) const {
  HeaderSwitch fields;
  fields.nbytes = pending_.nbytes();
  fields.cbytes = fields.nbytes > 0 ? out.position() - section : 0;
  fields.chunksize = pending_.chunksize();
  fields.has_vlmetalayers = next_has_vlmetalayers();
  if (fields.nbytes > 0) {
    if (auto put = out.append(index.finish()); !put) return put;
  }
  next.index_blocks = index.take_blocks();
  const auto trailer = next_trailer();
  if (!trailer) return Failure(trailer.error());
  if (auto put = out.append(*trailer); !put) return put;
  fields.frame_length = out.position();
  put_switch(fields, next.header);
  return out.flush();
}

/// The next state as readers will see it: what cannot be opened is not switched to.
Result<void> FrameWriter::open_next(Next& next) const {
  const auto length = load_be<std::uint64_t>(&next.header[layout::kFrameLengthAt]);
  auto source = std::make_shared<const PatchedSource>(next.header, file_source(files_, next.file, {}, length));
  auto opened = open_cframe(std::move(source), cache_);
  if (!opened) return Failure(opened.error());
  next.container = std::move(*opened);
  return {};
}

Result<void> FrameWriter::append_and_switch() {
  if (auto cut = cut_tail_locked(); !cut) return Failure(cut.error());
  const std::uint64_t end = parameters().frame_length;
  Next next;
  next.file = file_;
  next.header = next_header();
  const auto killed = bytes_killed();
  if (!killed) return Failure(killed.error());
  next.dead_bytes = dead_bytes_ + *killed + (end - header_.size() - parameters().cbytes);

  auto written = write_behind(next);
  if (written) written = open_next(next);
  if (!written) {
    static_cast<void>(files_.truncate(file_->fd(), end));  // what is left of it is cut the next time
    return written;
  }
  if (ever_synced_) {
    if (auto synced = files_.sync(file_->fd(), true); !synced) {
      failed_ = true;
      return synced;
    }
  }
  if (auto same = check_unchanged(); !same) return same;
  if (auto switched = switch_to(next); !switched) return switched;
  adopt(std::move(next));
  return {};
}

/// Step 5: one write, inside one sector.
Result<void> FrameWriter::switch_to(const Next& next) {
  const std::size_t end = metalayers_ ? header_.size() : kSwitchEnd;
  const ByteView fields = ByteView(next.header).first(end).subspan(kSwitchBegin);
  auto written = files_.pwrite(file_->fd(), fields, FileOffset{kSwitchBegin});
  if (written) return {};
  // A part of it may be there, and on its way to the disk. Unless the old fields are back, nobody knows which state
  // this is.
  const ByteView old = ByteView(header_).first(end).subspan(kSwitchBegin);
  const auto now = read_bytes(files_, file_->fd(), FileOffset{0}, header_.size());
  if (now && *now == header_) return written;
  auto restored = files_.pwrite(file_->fd(), old, FileOffset{kSwitchBegin});
  if (restored) restored = files_.sync(file_->fd(), true);
  if (!restored) failed_ = true;
  return written;
}

Result<void> FrameWriter::make_new_file() {
  const bool durable = ever_synced_;
  auto replacement = ReplacementFile::create(files_, dir_, path_, file_->fd());
  if (!replacement) return Failure(replacement.error());
  Next next;
  next.file = replacement->file();
  next.header = next_header();
  const std::uint64_t section = next.header.size();
  TailWriter out(files_, replacement->fd(), FileOffset{section});
  IndexEncoder index;
  if (auto copied = copy_live_chunks(*container_, pending_, section, out, index); !copied) return copied;
  if (auto done = finish_image(next, section, index, out); !done) return done;
  if (auto put = files_.pwrite(replacement->fd(), next.header, FileOffset{0}); !put) return put;
  if (auto opened = open_next(next); !opened) return opened;
  if (!has_changes()) {
    if (auto kept = replacement->keep_times(); !kept) return kept;
  }
  if (durable) {
    if (auto synced = replacement->sync(); !synced) {
      failed_ = true;
      return synced;
    }
  }
  if (auto same = check_unchanged(); !same) return same;
  auto placed = has_name_ ? replacement->publish() : replacement->drop_name();
  if (!placed) return placed;
  adopt(std::move(next));
  if (!durable || !has_name_) return {};
  unsynced_ = false;
  auto synced = sync_folder_of(files_, dir_, path_);
  if (!synced) failed_ = true;
  return synced;
}

void FrameWriter::adopt(Next next) {
  file_ = std::move(next.file);
  header_ = std::move(next.header);
  container_ = std::move(next.container);
  index_blocks_ = std::move(next.index_blocks);
  dead_bytes_ = next.dead_bytes;
  unsynced_ = true;
  abandon();
}

Result<void> FrameWriter::sync_all() {
  auto synced = files_.sync(file_->fd(), false);
  if (synced && !ever_synced_ && has_name_) synced = sync_folder_of(files_, dir_, path_);
  if (!synced) {
    failed_ = true;
    return synced;
  }
  unsynced_ = false;
  ever_synced_ = true;
  return {};
}

Result<void> compact(FileOps& files, int dir, const std::string& path, std::shared_ptr<IndexCache> cache,
                     const WriterOptions& options) {
  auto writer = FrameWriter::open(files, dir, path, std::move(cache), options);
  if (!writer) return Failure(writer.error());
  return (*writer)->compact();
}

}  // namespace cframefs::frame
