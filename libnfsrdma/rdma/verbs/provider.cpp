// SPDX-License-Identifier: Apache-2.0
// The provider, and the search for the device that leads to a peer. Making a provider touches no device: descriptors
// and mappings of one do not survive a fork, so that programs may go to the background after this and before
// resolve() or listen().
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <poll.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

#include "base/log.hpp"
#include "rdma/providers.hpp"
#include "rdma/verbs/completion_queue.hpp"
#include "rdma/verbs/errors.hpp"
#include "rdma/verbs/listener.hpp"

namespace nfsrdma::rdma {
namespace verbs {
namespace {

struct Found {
  CmId id;  // keeps the device open
  SocketAddress local;
  std::string device() const { return ibv_get_device_name(id->verbs->device); }
};

TimeNs now_ns() { return base::system_clock().now_ns(); }

std::string with_port(const std::string& name, uint8_t port) {
  return port == 0 ? name : name + "/" + std::to_string(port);
}

// The first event of a channel that nobody else reads, within a time.
Result<CmEvent> await_event(CmChannel& channel, TimeNs deadline_ns) {
  for (;;) {
    CmUser* user = nullptr;
    auto event = channel.read(&user);
    if (event || event.error().errno_value() != EAGAIN) return event;
    TimeNs now = now_ns();
    if (now >= deadline_ns) return Error(ETIMEDOUT, ErrorOrigin::connection, "no answer");
    pollfd waiting{channel.fd(), POLLIN, 0};
    poll(&waiting, 1, static_cast<int>(std::min<TimeNs>((deadline_ns - now) / 1'000'000 + 1, 60'000)));
  }
}

Result<Found> find_device(const std::shared_ptr<CmChannel>& channel, const ResolveParams& params,
                          const SocketAddress& source, TimeNs deadline_ns) {
  Attempt attempt{params.remote, source, nullptr};
  rdma_cm_id* raw = nullptr;
  if (rdma_create_id(channel->get(), &raw, nullptr, RDMA_PS_TCP) != 0)
    return call_error(attempt, "rdma_create_id", errno);
  CmId id(raw);
  SocketAddress from = source;
  SocketAddress to = params.remote;
  TimeNs left_ns = deadline_ns - std::min(deadline_ns, now_ns());
  int timeout_ms = static_cast<int>(std::clamp<TimeNs>(left_ns / 1'000'000, 1, 60'000));
  if (rdma_resolve_addr(id.get(), source.valid() ? from.get() : nullptr, to.get(), timeout_ms) != 0)
    return address_error(attempt, errno);
  auto event = await_event(*channel, deadline_ns);
  if (!event) return address_error(attempt, event.error().errno_value());
  if (event->type != RDMA_CM_EVENT_ADDR_RESOLVED) return event_error(attempt, Stage::address, *event);
  if (!id->verbs) return address_error(attempt, ENODEV);
  SocketAddress local = address_of(rdma_get_local_addr(id.get()));
  return Found{std::move(id), local};
}

// The addresses of this host's interfaces that lead to the named device.
std::vector<SocketAddress> addresses_of(const std::shared_ptr<CmChannel>& channel, sa_family_t family,
                                        const std::string& device, uint8_t port) {
  std::vector<SocketAddress> found;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return found;
  for (ifaddrs* i = list; i; i = i->ifa_next) {
    if (!i->ifa_addr || i->ifa_addr->sa_family != family || !(i->ifa_flags & IFF_UP)) continue;
    rdma_cm_id* raw = nullptr;
    if (rdma_create_id(channel->get(), &raw, nullptr, RDMA_PS_TCP) != 0) break;
    CmId id(raw);
    SocketAddress address = address_of(i->ifa_addr);
    address.set_port(0);
    if (rdma_bind_addr(raw, address.get()) == 0 && raw->verbs && device == ibv_get_device_name(raw->verbs->device) &&
        (port == 0 || raw->port_num == port))
      found.push_back(address);
  }
  freeifaddrs(list);
  return found;
}

bool matches(const Found& found, const std::string& device, uint8_t port) {
  return device.empty() || (device == found.device() && (port == 0 || found.id->port_num == port));
}

// "mlx5_0/1" into name and port; port 0 = any.
Result<void> split_name(const std::string& text, std::string* name, uint8_t* port) {
  size_t slash = text.rfind('/');
  *name = text.substr(0, slash);
  *port = 0;
  if (slash == std::string::npos) return {};
  auto [end, error] = std::from_chars(text.data() + slash + 1, text.data() + text.size(), *port);
  if (error != std::errc() || end != text.data() + text.size() || *port == 0)
    return Error(EINVAL, ErrorOrigin::usage,
                 "verbs: '" + text + "' (rdma_dev=) is neither a device (mlx5_0) nor one and its port (mlx5_0/1)");
  return {};
}

class VerbsProvider final : public Provider {
 public:
  explicit VerbsProvider(const VerbsOptions& options)
      : options_(options), devices_(std::make_shared<DeviceTable>(options.memory_windows)) {}
  const char* name() const override { return "verbs"; }
  Result<std::unique_ptr<CompletionQueue>> create_completion_queue(uint32_t entries) override {
    return VerbsCompletionQueue::create(entries);
  }
  Result<std::shared_ptr<Device>> resolve(const ResolveParams& params) override;
  Result<std::unique_ptr<Listener>> listen(const SocketAddress& address, CompletionQueue& cq,
                                           ListenHandler& handler) override {
    return VerbsListener::create(devices_, address, static_cast<VerbsCompletionQueue&>(cq), handler);
  }

 private:
  Result<Found> find_by_name(const std::shared_ptr<CmChannel>& channel, const ResolveParams& params,
                             const std::string& name, uint8_t port, TimeNs deadline_ns, Result<Found> by_route);

  VerbsOptions options_;
  std::shared_ptr<DeviceTable> devices_;
};

// The route took another device than the one asked for (or none): try from the addresses which the named one has.
Result<Found> VerbsProvider::find_by_name(const std::shared_ptr<CmChannel>& channel, const ResolveParams& params,
                                          const std::string& name, uint8_t port, TimeNs deadline_ns,
                                          Result<Found> by_route) {
  std::string names = device_names();
  if ((", " + names + ",").find(", " + name + ",") == std::string::npos)
    return Error(ENODEV, ErrorOrigin::usage,
                 base::text("verbs: this machine has no RDMA device %s (rdma_dev=); it has: %s", name.c_str(),
                            names.c_str()));
  std::optional<Error> last;
  for (const SocketAddress& source : addresses_of(channel, params.remote.family(), name, port)) {
    if (last && now_ns() >= deadline_ns) break;  // the time is for all of them together
    auto found = find_device(channel, params, source, deadline_ns);
    if (found && matches(*found, name, port)) return found;
    if (!found) last = found.error();
  }
  if (last) return *last;
  std::string other = by_route ? "the route leaves by " + by_route->device() : by_route.error().text();
  return Error(ENETUNREACH, ErrorOrigin::connection,
               base::text("verbs: %s cannot be reached through %s (rdma_dev=), which has no usable address of that "
                          "family: %s",
                          params.remote.text().c_str(), with_port(name, port).c_str(), other.c_str()));
}

Result<std::shared_ptr<Device>> VerbsProvider::resolve(const ResolveParams& params) {
  // A channel of its own: no loop's events get mixed in, and nobody's loop waits.
  auto channel = CmChannel::open();
  if (!channel) return std::move(channel).error();
  std::string name;
  uint8_t port = 0;
  if (auto ok = split_name(params.device_name.empty() ? options_.device_name : params.device_name, &name, &port); !ok)
    return std::move(ok).error();
  TimeNs deadline_ns = now_ns() + params.timeout_ns;
  auto found = find_device(*channel, params, params.local, deadline_ns);
  bool by_name = false;
  if (!name.empty() && (!found || !matches(*found, name, port)) && !params.local.valid()) {
    found = find_by_name(*channel, params, name, port, deadline_ns, std::move(found));
    by_name = true;
  }
  if (!found) return std::move(found).error();
  if (!matches(*found, name, port))
    return Error(EINVAL, ErrorOrigin::usage,
                 base::text("verbs: the source address %s belongs to %s, not to %s (rdma_dev=)",
                            params.local.host_text().c_str(), found->device().c_str(), name.c_str()));
  SocketAddress local = found->local;
  auto device = devices_->find({*channel, std::move(found->id)});
  if (!device) return std::move(device).error();
  if (by_name) (*device)->set_source(local);
  return std::shared_ptr<Device>(*device);
}

}  // namespace
}  // namespace verbs

std::shared_ptr<Provider> make_verbs_provider(const VerbsOptions& options) {
  return std::make_shared<verbs::VerbsProvider>(options);
}

}  // namespace nfsrdma::rdma
