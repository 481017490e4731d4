#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include <cpprest/streams.h>
#include <pplx/pplxtasks.h>

namespace bimetal::kube {

// A stream buffer that can only be written to and keeps nothing: each piece goes to `accept`, whose
// task completes when there is room for the next one. cpprest reads no further from the connection
// until then, which is the back-pressure its own buffers lack.
using AcceptPiece = std::function<pplx::task<void>(const std::uint8_t* data, std::size_t size)>;

concurrency::streams::ostream MakeBodySink(AcceptPiece accept);

}  // namespace bimetal::kube
