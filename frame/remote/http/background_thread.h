// Starts the threads of this directory: they receive no signals, which are for other threads.
//
// Thread safety: a function. Errors: io EAGAIN if the system has no thread or no memory left.
#pragma once

#include <functional>
#include <thread>

#include "codec/base/error.h"

namespace cframefs::frame {

/// Returns a thread that runs `body`.
codec::Result<std::thread> start_background_thread(std::function<void()> body);

}  // namespace cframefs::frame
