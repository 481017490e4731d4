#include <utility>

#include "kube/client/client.h"
#include "operator/agents/authenticator.h"

namespace bimetal::op {
namespace {

class KubeTokenReviewer final : public TokenReviewer {
 public:
  explicit KubeTokenReviewer(kube::Client& client) : client_(client) {}

  Result<api::TokenReviewStatus> Review(const std::string& token,
                                        const std::string& audience) override {
    api::TokenReview review;
    review.mutable_spec()->set_token(token);
    review.mutable_spec()->add_audiences(audience);
    BIMETAL_TRY_ASSIGN(api::TokenReview answer, client_.Create(review));
    return std::move(*answer.mutable_status());
  }

  Result<std::string> NodeOfPod(const std::string& name_space, const std::string& name,
                                const std::string& uid) override {
    BIMETAL_TRY_ASSIGN(const api::Pod pod, client_.Get<api::Pod>(name_space, name));
    if (pod.metadata().uid() != uid || pod.spec().node_name().empty()) {
      return Fail(ErrorCode::kNotFound, "no pod of that uid on a node");
    }
    return pod.spec().node_name();
  }

 private:
  kube::Client& client_;
};

}  // namespace

std::unique_ptr<TokenReviewer> MakeKubeTokenReviewer(kube::Client& client) {
  return std::make_unique<KubeTokenReviewer>(client);
}

}  // namespace bimetal::op
