#pragma once

#include <functional>
#include <string>

namespace bimetal::agent {

// A folder of its own that is removed at the end.
class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// True as soon as `condition` is; false where it is not within 30 s.
bool Eventually(const std::function<bool()>& condition);

void WriteFile(const std::string& path, const std::string& text);
std::string ReadFile(const std::string& path);

// A certificate authority and one server certificate, made by openssl in `folder`.
struct Certificates {
  std::string ca_pem;
  std::string server_pem;
  std::string server_key_pem;
};
// The server's certificate is for `name` alone. Ends the test program where openssl fails.
Certificates MakeCertificates(const std::string& folder, const std::string& name);

// What a connection to the Unix socket answers to `text`, until the peer closes.
std::string AskSocket(const std::string& path, const std::string& text);

// The body of http://127.0.0.1:port/path.
std::string HttpGet(int port, const std::string& path);

}  // namespace bimetal::agent
