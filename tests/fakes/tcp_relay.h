#pragma once

#include <atomic>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace bimetal::test {

// Passes bytes between a loopback port and a server, so that a test can cut connections to a server
// that it does not own. Thread-safe.
class TcpRelay {
 public:
  // `host` is an IPv4 address.
  TcpRelay(const std::string& host, int port);
  ~TcpRelay();
  TcpRelay(const TcpRelay&) = delete;
  TcpRelay& operator=(const TcpRelay&) = delete;

  int port() const { return port_; }
  // Cuts all connections of this moment; new ones are passed on.
  void DropConnections();

 private:
  void Accept();
  void Pump(int from, int to);

  std::string host_;
  int target_port_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::vector<int> sockets_;
  std::vector<std::thread> workers_;
  std::thread acceptor_;
};

}  // namespace bimetal::test
