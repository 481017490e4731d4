#include "kube/transport/body_sink.h"

#include <utility>

namespace bimetal::kube {
namespace {

namespace streams = concurrency::streams;
using Base = streams::details::streambuf_state_manager<std::uint8_t>;

class BodySink final : public Base {
 public:
  explicit BodySink(AcceptPiece accept) : Base(std::ios_base::out), accept_(std::move(accept)) {}

  bool can_seek() const override { return false; }
  bool has_size() const override { return false; }
  std::size_t buffer_size(std::ios_base::openmode) const override { return 0; }
  void set_buffer_size(std::size_t, std::ios_base::openmode) override {}
  std::size_t in_avail() const override { return 0; }
  pos_type getpos(std::ios_base::openmode) const override { return static_cast<pos_type>(-1); }
  pos_type seekpos(pos_type, std::ios_base::openmode) override { return static_cast<pos_type>(-1); }
  pos_type seekoff(off_type, std::ios_base::seekdir, std::ios_base::openmode) override {
    return static_cast<pos_type>(-1);
  }
  bool acquire(std::uint8_t*& ptr, std::size_t& count) override {
    ptr = nullptr;
    count = 0;
    return false;
  }
  void release(std::uint8_t*, std::size_t) override {}

 protected:
  pplx::task<int_type> _putc(std::uint8_t c) override {
    return accept_(&c, 1).then([c] { return static_cast<int_type>(c); });
  }
  pplx::task<std::size_t> _putn(const std::uint8_t* data, std::size_t count) override {
    return accept_(data, count).then([count] { return count; });
  }
  pplx::task<bool> _sync() override { return pplx::task_from_result(true); }
  std::uint8_t* _alloc(std::size_t) override { return nullptr; }
  void _commit(std::size_t) override {}

  // Reading is not possible.
  pplx::task<int_type> _bumpc() override { return Eof(); }
  int_type _sbumpc() override { return traits::eof(); }
  pplx::task<int_type> _getc() override { return Eof(); }
  int_type _sgetc() override { return traits::eof(); }
  pplx::task<int_type> _nextc() override { return Eof(); }
  pplx::task<int_type> _ungetc() override { return Eof(); }
  pplx::task<std::size_t> _getn(std::uint8_t*, std::size_t) override {
    return pplx::task_from_result<std::size_t>(0);
  }
  std::size_t _scopy(std::uint8_t*, std::size_t) override { return 0; }

 private:
  static pplx::task<int_type> Eof() { return pplx::task_from_result<int_type>(traits::eof()); }

  AcceptPiece accept_;
};

}  // namespace

streams::ostream MakeBodySink(AcceptPiece accept) {
  return streams::ostream(
      streams::streambuf<std::uint8_t>(std::make_shared<BodySink>(std::move(accept))));
}

}  // namespace bimetal::kube
