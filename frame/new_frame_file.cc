#include "frame/new_frame_file.h"

#include <string>

#include "frame/frame_layout.h"
#include "frame/live_copy.h"

namespace cframefs::frame {
namespace {

// The image of an empty frame is its header and a trailer.
std::vector<std::uint8_t> header_of(const NewFrame& frame) {
  std::vector<std::uint8_t> image = empty_frame(frame);
  image.resize(static_cast<std::size_t>(codec::load_be<std::int32_t>(&image[layout::kHeaderLengthAt])));
  return image;
}

}  // namespace

NewFrameFile::NewFrameFile(FileOps& files, int fd, const NewFrame& frame)
    : files_(files),
      fd_(fd),
      chunksize_(frame.chunksize),
      header_(header_of(frame)),
      out_(files, fd, FileOffset{header_.size()}) {}

Result<void> NewFrameFile::append(const codec::EncodedChunk& chunk) {
  if (chunk.nbytes < 1 || chunk.nbytes > chunksize_ || nbytes_ % static_cast<std::uint64_t>(chunksize_) != 0) {
    return codec::invalid("a chunk of " + std::to_string(chunk.nbytes) + " bytes where chunks have " +
                          std::to_string(chunksize_));
  }
  if (index_.count() == IndexEncoder::kMaxEntries) {
    return codec::invalid("more than " + std::to_string(IndexEncoder::kMaxEntries) + " chunks: choose larger ones");
  }
  nbytes_ += static_cast<std::uint64_t>(chunk.nbytes);
  if (chunk.special != codec::SpecialValue::none) {
    index_.append(special_entry_of(chunk.special));
    return {};
  }
  index_.append(static_cast<std::int64_t>(out_.position() - header_.size()));
  return out_.append(chunk.bytes);
}

Result<void> NewFrameFile::take_chunks(const FrameContainer& from) {
  nbytes_ = from.parameters().nbytes;
  return copy_all_chunks(from, header_.size(), out_, index_);
}

Result<void> NewFrameFile::finish(const std::vector<Metalayer>& vlmetalayers) {
  HeaderSwitch fields;
  fields.nbytes = nbytes_;
  fields.cbytes = out_.position() - header_.size();
  fields.chunksize = chunksize_;
  fields.has_vlmetalayers = !vlmetalayers.empty();
  if (nbytes_ > 0) {
    if (auto put = out_.append(index_.finish()); !put) return put;
  }
  std::vector<Metalayer> stored;
  for (const Metalayer& layer : vlmetalayers) {
    if (layer.content.size() > codec::kMaxChunkBytes)
      return codec::invalid("a metalayer of more than a chunk can hold");
    stored.push_back({layer.name, metalayer_chunk(layer.content)});
    if (auto fits = check_metalayer_room(stored); !fits) return fits;
  }
  if (auto put = out_.append(trailer_image(stored)); !put) return put;
  fields.frame_length = out_.position();
  if (auto flushed = out_.flush(); !flushed) return flushed;
  put_switch(fields, header_);
  return files_.pwrite(fd_, header_, FileOffset{0});
}

}  // namespace cframefs::frame
