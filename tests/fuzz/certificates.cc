// Certificates in a Secret or a bundle of others, and the claims of a token.
#include "operator/tls/certificates.h"

#include "operator/agents/authenticator.h"
#include "tests/fuzz/fuzz.h"

BIMETAL_FUZZ(text) {
  if (const auto expiry = op::TokenExpiry(text)) Require(expiry->ms >= 0);
  op::NotBefore(text);
  op::NotAfter(text);
  const auto parts = Parts(text, 2);
  op::CheckKeyPair({parts.front(), parts.back()});
  const auto certificates = op::SplitBundle(text);
  if (!certificates) return;
  for (const auto& certificate : *certificates) {
    const auto alone = op::SplitBundle(certificate);
    Require(alone && alone->size() == 1 && alone->front() == certificate);
  }
}
