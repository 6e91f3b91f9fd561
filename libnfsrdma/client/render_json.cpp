// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "nfsrdma/stats.hpp"

namespace nfsrdma {
namespace {

using Json = nlohmann::ordered_json;

constexpr int schema_version = 1;

Json json_of(const ConnectionStats& c) {
  return {{"proto", c.rdma ? "rdma" : "tcp"},
          {"up", c.up},
          {"path", c.path},
          {"source_port", c.source_port},
          {"bind_count", c.bind_count},
          {"connect_count", c.connect_count},
          {"connect_time_ms", c.connect_time_ms},
          {"idle_time_s", c.idle_time_s},
          {"sends", c.sends},
          {"receives", c.receives},
          {"bad_xids", c.bad_xids},
          {"in_flight_sum", c.in_flight_sum},
          {"backlog_sum", c.backlog_sum},
          {"read_chunks", c.read_chunks},
          {"write_chunks", c.write_chunks},
          {"reply_chunks", c.reply_chunks},
          {"rdma_request_bytes", c.rdma_request_bytes},
          {"rdma_reply_bytes", c.rdma_reply_bytes},
          {"pullup_bytes", c.pullup_bytes},
          {"fixup_bytes", c.fixup_bytes},
          {"hardway_register", c.hardway_register},
          {"failed_marshal", c.failed_marshal},
          {"bad_replies", c.bad_replies},
          {"nomsg_calls", c.nomsg_calls},
          {"recovered_mrs", c.recovered_mrs},
          {"orphaned_mrs", c.orphaned_mrs},
          {"allocated_mrs", c.allocated_mrs},
          {"local_invalidates", c.local_invalidates},
          {"empty_sendctx", c.empty_sendctx},
          {"reply_waits_for_send", c.reply_waits_for_send},
          {"credits_granted", c.credits_granted},
          {"in_flight", c.in_flight},
          {"credit_stalls", c.credit_stalls},
          {"reverse_calls", c.reverse_calls},
          {"remote_invalidations", c.remote_invalidations}};
}

Json json_of(const OperationStats& op) {
  return {{"calls", op.calls},
          {"transmissions", op.transmissions},
          {"timeouts", op.timeouts},
          {"bytes_sent", op.bytes_sent},
          {"bytes_received", op.bytes_received},
          {"queue_ms", op.queue_ms},
          {"response_ms", op.response_ms},
          {"execute_ms", op.execute_ms},
          {"errors", op.errors}};
}

}  // namespace

std::string render_json(const Stats& s) {
  Json json = {{"schema", schema_version},
               {"server", s.server},
               {"export", s.export_path},
               {"server_address", s.server_address},
               {"implementation", s.implementation},
               {"url", format_url(s.options)},
               {"minor_version", s.minor_version},
               {"nconnect", s.nconnect},
               {"rsize_bytes", s.rsize_bytes},
               {"wsize_bytes", s.wsize_bytes},
               {"lease_s", s.lease_s},
               {"slots", s.slots},
               {"age_s", s.age_s},
               {"read_bytes", s.read_bytes},
               {"write_bytes", s.write_bytes},
               {"direct_read_bytes", s.direct_read_bytes},
               {"direct_write_bytes", s.direct_write_bytes},
               {"bounced_bytes", s.bounced_bytes},
               {"payload_copied_bytes", s.payload_copied_bytes},
               {"pool_bytes_max", s.pool_bytes_max},
               {"pool_bytes_registered", s.pool_bytes_registered},
               {"pool_bytes_used", s.pool_bytes_used},
               {"reconnects", s.reconnects},
               {"replays", s.replays},
               {"commits_resent", s.commits_resent},
               {"callbacks", s.callbacks}};
  json["connections"] = Json::array();
  for (const ConnectionStats& connection : s.connections) json["connections"].push_back(json_of(connection));
  json["operations"] = Json::object();
  for (const OperationStats& op : s.operations) json["operations"][op.name] = json_of(op);
  // Names from the server need not be UTF-8: what is not becomes U+FFFD.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace nfsrdma
