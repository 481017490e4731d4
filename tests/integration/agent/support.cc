#include "tests/integration/agent/support.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "core/base/result.h"

namespace bimetal::agent {
namespace {

void Shell(const std::string& command) {
  // NOLINTNEXTLINE(cert-env33-c): a test's own words
  BIMETAL_CHECK(std::system((command + " 2>/dev/null").c_str()) == 0);
}

std::string Exchange(int fd, const sockaddr* address, socklen_t size, const std::string& text) {
  const timeval limit{30, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  std::string out;
  if (connect(fd, address, size) == 0) {
    // A peer that refuses early closes before it read everything.
    const ssize_t sent = send(fd, text.data(), text.size(), MSG_NOSIGNAL);
    static_cast<void>(sent);
    char buffer[4096];
    ssize_t n = 0;
    while ((n = recv(fd, buffer, sizeof(buffer), 0)) > 0) {
      out.append(buffer, static_cast<std::size_t>(n));
    }
  }
  close(fd);
  return out;
}

}  // namespace

TempFolder::TempFolder() {
  const char* base = std::getenv("TMPDIR");
  std::string name = std::string(base != nullptr ? base : "/tmp") + "/bimetal-agent-XXXXXX";
  BIMETAL_CHECK(mkdtemp(name.data()) != nullptr);
  path_ = name;
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

bool Eventually(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

void WriteFile(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

Certificates MakeCertificates(const std::string& folder, const std::string& name) {
  std::filesystem::create_directories(folder);
  const std::string key = " -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes ";
  WriteFile(folder + "/san", "subjectAltName=DNS:" + name + "\n");
  Shell("cd " + folder + " && openssl req -x509" + key +
        "-keyout ca.key -out ca.crt -days 2 -subj /CN=test-ca" + " && openssl req" + key +
        "-keyout tls.key -out tls.csr -subj /CN=" + name +
        " && openssl x509 -req -in tls.csr -CA ca.crt -CAkey ca.key -CAcreateserial"
        " -days 2 -extfile san -out tls.crt");
  return {ReadFile(folder + "/ca.crt"), ReadFile(folder + "/tls.crt"),
          ReadFile(folder + "/tls.key")};
}

std::string AskSocket(const std::string& path, const std::string& text) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  return Exchange(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0),
                  reinterpret_cast<const sockaddr*>(&address), sizeof(address), text);
}

std::string HttpGet(int port, const std::string& path) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return Exchange(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
                  reinterpret_cast<const sockaddr*>(&address), sizeof(address),
                  "GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
}

}  // namespace bimetal::agent
