// SPDX-License-Identifier: Apache-2.0
#include "rdma/verbs/device.hpp"

#include <errno.h>

#include <algorithm>
#include <cstring>

#include "base/log.hpp"

namespace nfsrdma::rdma::verbs {
namespace {

constexpr uint32_t siw_vendor_id = 0x626d74;
constexpr uint32_t rxe_vendor_id = 0xffffff;
// A connect request of the IP service has 92 bytes less 36 of its own header; MPA takes 512, librdmacm counts to 255.
constexpr uint32_t private_data_ib_max = 56;
constexpr uint32_t private_data_iwarp_max = 255;

uint32_t mtu_bytes(ibv_mtu mtu) { return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 ? 128u << mtu : 0; }

uint32_t positive(int value, uint32_t at_most) {
  return std::clamp<uint32_t>(value > 0 ? static_cast<uint32_t>(value) : 0, 0, at_most);
}

DeviceTraits traits_of(ibv_context* context, const ibv_device_attr& attr, const ibv_port_attr& port_attr) {
  DeviceTraits traits;
  traits.name = ibv_get_device_name(context->device);
  traits.iwarp = context->device->transport_type == IBV_TRANSPORT_IWARP;
  traits.siw = traits.iwarp && attr.vendor_id == siw_vendor_id;
  traits.rxe = !traits.iwarp && attr.vendor_id == rxe_vendor_id;
  traits.windows = attr.max_mw > 0 && (attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B);
  traits.work_requests_max = positive(attr.max_qp_wr, UINT32_MAX);
  traits.completions_max = positive(attr.max_cqe, UINT32_MAX);
  traits.private_data_max = traits.iwarp ? private_data_iwarp_max : private_data_ib_max;
  traits.link = traits.iwarp                                             ? "iWARP"
                : port_attr.link_layer == IBV_LINK_LAYER_ETHERNET ? "RoCE"
                                                                         : "InfiniBand";
  traits.mtu_bytes = mtu_bytes(port_attr.active_mtu);
  return traits;
}

Caps caps_of(const DeviceTraits& traits, const ibv_device_attr& attr, const ibv_port_attr& port_attr) {
  Caps caps;
  caps.send_sge_max = std::max(1u, positive(attr.max_sge, sge_max));
  caps.receive_sge_max = 1;
  caps.read_sge_max = traits.iwarp ? 1 : std::max(1u, positive(attr.max_sge_rd, caps.send_sge_max));
  // librdmacm carries both depths in one byte each.
  caps.ird_max = positive(attr.max_qp_rd_atom, 255);
  caps.ord_max = positive(attr.max_qp_init_rd_atom, 255);
  caps.segment_bytes_max = std::min(caps.segment_bytes_max, port_attr.max_msg_sz);
  caps.remote_invalidate = traits.windows;
  caps.keys_per_exposure = traits.windows;
  return caps;
}

uint8_t port_of(const rdma_cm_id& id) { return id.port_num == 0 ? 1 : id.port_num; }

}  // namespace

Result<std::shared_ptr<VerbsDevice>> VerbsDevice::probe(DevicePin pin, bool windows_wanted) {
  ibv_context* context = pin.id->verbs;
  uint8_t port = port_of(*pin.id);
  ibv_device_attr attr{};
  ibv_port_attr port_attr{};
  const char* name = ibv_get_device_name(context->device);
  if (int error = ibv_query_device(context, &attr))
    return Error(error, ErrorOrigin::connection,
                 base::text("RDMA device %s does not tell its limits: %s", name, strerror(error)));
  if (int error = ibv_query_port(context, port, &port_attr))
    return Error(error, ErrorOrigin::connection,
                 base::text("RDMA device %s does not tell about its port %u: %s", name, port, strerror(error)));
  std::shared_ptr<VerbsDevice> device(new VerbsDevice(std::move(pin)));
  device->traits_ = traits_of(context, attr, port_attr);
  device->traits_.port = port;
  device->traits_.windows &= windows_wanted;
  device->caps_ = caps_of(device->traits_, attr, port_attr);
  return device;
}

std::string VerbsDevice::describe() const {
  return base::text("%s port %u (%s, active mtu %u)", traits_.name.c_str(), traits_.port, traits_.link.c_str(),
                    traits_.mtu_bytes);
}

Result<std::shared_ptr<ProtectionDomain>> VerbsDevice::create_protection_domain() {
  ibv_pd* pd = ibv_alloc_pd(context_);
  if (!pd) {
    int error = errno;
    return Error(error, ErrorOrigin::local,
                 base::text("%s gives no protection domain: %s", traits_.name.c_str(), strerror(error)));
  }
  return std::shared_ptr<ProtectionDomain>(std::make_shared<VerbsDomain>(shared_from_this(), pd));
}

void VerbsDevice::set_source(const SocketAddress& source) {
  std::lock_guard lock(mutex_);
  source_ = source;
}

SocketAddress VerbsDevice::source() const {
  std::lock_guard lock(mutex_);
  return source_;
}

Result<std::shared_ptr<VerbsDevice>> DeviceTable::find(DevicePin pin) {
  std::lock_guard lock(mutex_);
  std::shared_ptr<VerbsDevice>& entry = devices_[{pin.id->verbs, port_of(*pin.id)}];
  if (entry) return entry;
  auto device = VerbsDevice::probe(std::move(pin), windows_wanted_);
  if (device) entry = *device;
  return device;
}

Result<std::shared_ptr<VerbsDevice>> DeviceTable::find_of(rdma_cm_id* id) {
  {
    std::lock_guard lock(mutex_);
    auto at = devices_.find({id->verbs, port_of(*id)});
    if (at != devices_.end() && at->second) return at->second;
  }
  auto channel = CmChannel::open();
  if (!channel) return std::move(channel).error();
  rdma_cm_id* raw = nullptr;
  if (rdma_create_id((*channel)->get(), &raw, nullptr, RDMA_PS_TCP) != 0)
    return Error(errno, ErrorOrigin::local, base::text("rdma_create_id: %s", strerror(errno)));
  CmId bound(raw);
  SocketAddress local = address_of(rdma_get_local_addr(id));
  local.set_port(0);
  if (rdma_bind_addr(raw, local.get()) != 0 || raw->verbs != id->verbs)
    return Error(ENODEV, ErrorOrigin::connection,
                 base::text("a request came by %s, but its local address %s does not lead there",
                            ibv_get_device_name(id->verbs->device), local.host_text().c_str()));
  return find({*channel, std::move(bound)});
}

VerbsDomain::VerbsDomain(std::shared_ptr<VerbsDevice> device, ibv_pd* pd) : device_(std::move(device)), pd_(pd) {}

VerbsDomain::~VerbsDomain() {
  if (int error = ibv_dealloc_pd(pd_))
    base::log(base::LogLevel::error, "rdma", "%s: a protection domain is still in use: %s",
              device_->traits().name.c_str(), strerror(error));
}

}  // namespace nfsrdma::rdma::verbs
