#pragma once

#include <string>
#include <string_view>

#include "core/base/result.h"

namespace bimetal {

// RFC 4648 base64 with padding, as in Secret.data.
std::string Base64Encode(std::string_view bytes);
// The inverse. Error kInvalid for any character or length that Base64Encode does not produce; never
// quotes the text, which may be a secret.
Result<std::string> Base64Decode(std::string_view text);
// RFC 4648 section 5 (base64url) without padding, as in a JSON Web Token.
std::string Base64UrlEncode(std::string_view bytes);
Result<std::string> Base64UrlDecode(std::string_view text);

}  // namespace bimetal
