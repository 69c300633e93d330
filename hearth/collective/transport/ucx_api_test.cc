// Compares our declarations with UCX's headers, if installed (Debian: libucx-dev).
#include "hearth/collective/transport/ucx_api.h"

#include <gtest/gtest.h>

#if __has_include(<ucp/api/ucp.h>)
#include <ucp/api/ucp.h>

#include <type_traits>

namespace hearth::collective::ucx {
namespace {

static_assert(sizeof(ucs_status_t) == sizeof(Status));
static_assert(UCS_OK == kOk && UCS_INPROGRESS == kInProgress && UCS_ERR_BUSY == kBusy);
static_assert(UCS_ERR_LAST == kLastError);

static_assert(offsetof(ucp_params_t, features) == offsetof(Params, features));
static_assert(offsetof(ucp_params_t, estimated_num_eps) == offsetof(Params, endpoints));
static_assert(sizeof(ucp_params_t) <= sizeof(Params));
static_assert(UCP_PARAM_FIELD_FEATURES == Params::kFeatures);
static_assert(UCP_PARAM_FIELD_ESTIMATED_NUM_EPS == Params::kEndpoints);
static_assert(UCP_FEATURE_TAG == Params::kTag && UCP_FEATURE_WAKEUP == Params::kWakeup);

static_assert(offsetof(ucp_worker_params_t, thread_mode) == offsetof(WorkerParams, thread_mode));
static_assert(sizeof(ucp_worker_params_t) <= sizeof(WorkerParams));
static_assert(UCP_WORKER_PARAM_FIELD_THREAD_MODE == WorkerParams::kThreadMode);
static_assert(UCS_THREAD_MODE_SERIALIZED == WorkerParams::kSerialized);

static_assert(offsetof(ucp_ep_params_t, address) == offsetof(EndpointParams, address));
static_assert(offsetof(ucp_ep_params_t, err_mode) == offsetof(EndpointParams, error_mode));
static_assert(offsetof(ucp_ep_params_t, err_handler) == offsetof(EndpointParams, on_error));
static_assert(offsetof(ucp_ep_params_t, user_data) == offsetof(EndpointParams, newer));
static_assert(sizeof(ucp_ep_params_t) <= sizeof(EndpointParams));
static_assert(UCP_EP_PARAM_FIELD_REMOTE_ADDRESS == EndpointParams::kAddress);
static_assert(UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE == EndpointParams::kErrorMode);
static_assert(UCP_EP_PARAM_FIELD_ERR_HANDLER == EndpointParams::kErrorHandler);
static_assert(UCP_ERR_HANDLING_MODE_PEER == EndpointParams::kPeerErrors);

static_assert(offsetof(ucp_request_param_t, op_attr_mask) == offsetof(RequestParams, mask));
static_assert(offsetof(ucp_request_param_t, flags) == offsetof(RequestParams, flags));
static_assert(sizeof(ucp_request_param_t) <= sizeof(RequestParams));
static_assert(UCP_OP_ATTR_FIELD_FLAGS == RequestParams::kFlags);
static_assert(UCP_EP_CLOSE_FLAG_FORCE == RequestParams::kForce);
static_assert(std::is_same_v<ucp_tag_t, uint64_t>);

}  // namespace
}  // namespace hearth::collective::ucx
#endif

namespace hearth::collective::ucx {
namespace {

TEST(UcxLibrary, HasAllFunctionsIfInstalled) {
  if (const std::string reason = Library().problem; !reason.empty()) GTEST_SKIP() << reason;
  EXPECT_STREQ(Library().Get().status_string(kOk), "Success");
  EXPECT_STREQ(Library().Get().status_string(kBusy), "Device is busy");
}

TEST(UcxLibrary, DistinguishesErrorsFromRequests) {
  int request = 0;
  EXPECT_FALSE(IsError(nullptr));
  EXPECT_FALSE(IsError(&request));
  EXPECT_TRUE(IsError(reinterpret_cast<void*>(intptr_t{-1})));
  EXPECT_TRUE(IsError(reinterpret_cast<void*>(intptr_t{-80})));
}

}  // namespace
}  // namespace hearth::collective::ucx
