#include "kube/transport/tls.h"

#include <exception>
#include <functional>

#include "kube/transport/file.h"

namespace bimetal::kube {
namespace {

Result<std::string> Material(const std::string& file, const std::string& inline_pem) {
  if (!file.empty()) return ReadSmallFile(file);
  return inline_pem;
}

}  // namespace

void TlsMaterial::Configure(boost::asio::ssl::context& context) {
  Status status;
  try {
    status = Apply(context);
  } catch (const std::exception& e) {
    status = Fail(ErrorCode::kInvalid, std::string("certificate or key: ") + e.what());
  }
  const std::lock_guard lock(mutex_);
  error_ = status ? std::string() : status.error().message;
}

Status TlsMaterial::Apply(boost::asio::ssl::context& context) const {
  // cpprest has put the system's CAs into the store; a new, empty one drops them. It comes first,
  // so that any failure below leaves us trusting nobody.
  SSL_CTX_set_cert_store(context.native_handle(), X509_STORE_new());
  SSL_CTX_set_min_proto_version(context.native_handle(), TLS1_2_VERSION);
  BIMETAL_TRY_ASSIGN(const std::string ca, Material(config_.ca_file, config_.ca_pem));
  if (ca.empty()) return Fail(ErrorCode::kInvalid, "no certificate authority is configured");
  context.add_certificate_authority(boost::asio::buffer(ca));
  BIMETAL_TRY_ASSIGN(const std::string cert,
                     Material(config_.client_cert_file, config_.client_cert_pem));
  if (cert.empty()) return {};
  BIMETAL_TRY_ASSIGN(const std::string key,
                     Material(config_.client_key_file, config_.client_key_pem));
  context.use_certificate_chain(boost::asio::buffer(cert));
  context.use_private_key(boost::asio::buffer(key), boost::asio::ssl::context::pem);
  return {};
}

std::string TlsMaterial::Error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

std::size_t TlsMaterial::Stamp() const {
  std::string all;
  for (const std::string& file :
       {config_.ca_file, config_.client_cert_file, config_.client_key_file}) {
    if (file.empty()) continue;
    const Result<std::string> text = ReadSmallFile(file);
    all += text ? *text : std::string();
    all += '\n';
  }
  return std::hash<std::string>{}(all);
}

}  // namespace bimetal::kube
