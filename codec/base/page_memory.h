// Memory that is about to be written whole: its pages are asked for at once instead of faulted in one by one.
//
// Thread safety: functions only. Errors: none; where the system cannot do it, the pages are faulted in as they are
// touched.
#pragma once

#include <cstddef>

namespace cframefs::codec {

/// Makes the pages of [data, data + size) resident, where there are enough of them for it to be worth a call.
void fault_in(void* data, std::size_t size);

}  // namespace cframefs::codec
