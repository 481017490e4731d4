#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include "core/base/base64.h"
#include "operator/agents/authenticator.h"

namespace bimetal::op {

Result<TimePoint> TokenExpiry(std::string_view token) {
  const auto first = token.find('.');
  const auto second = first == token.npos ? first : token.find('.', first + 1);
  if (second == token.npos) return Fail(ErrorCode::kData, "token is not a JSON Web Token");
  const auto claims = Base64UrlDecode(token.substr(first + 1, second - first - 1));
  if (!claims) return Fail(ErrorCode::kData, "token's claims are not base64url");
  google::protobuf::Struct object;
  if (!google::protobuf::util::JsonStringToMessage(*claims, &object).ok()) {
    return Fail(ErrorCode::kData, "token's claims are not a JSON object");
  }
  const auto exp = object.fields().find("exp");
  // 2^53: beyond it a JSON number is not an exact second any more.
  if (exp == object.fields().end() || !exp->second.has_number_value() ||
      !(exp->second.number_value() > 0 && exp->second.number_value() < 9007199254740992.0 / 1000)) {
    return Fail(ErrorCode::kData, "token has no expiry");
  }
  return TimePoint{static_cast<std::int64_t>(exp->second.number_value()) * 1000};
}

}  // namespace bimetal::op
