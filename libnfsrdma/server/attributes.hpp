// SPDX-License-Identifier: Apache-2.0
// Between the store's attributes and fattr4.
#pragma once

#include <array>

#include "nfs4/attributes.hpp"
#include "server/compound.hpp"

namespace nfsrdma::server {

// What GETATTR can answer and what SETATTR and the creating operations can set.
extern const nfs4::Bitmap attributes_readable;
extern const nfs4::Bitmap attributes_settable;
// suppattr_exclcreat: the times hold the verifier of an exclusive create.
extern const nfs4::Bitmap attributes_with_exclusive;

// Values with what their views point into.
struct AttributeValues {
  nfs4::Attributes values;
  AttributeValues() = default;
  AttributeValues(const AttributeValues&) = delete;
  AttributeValues& operator=(const AttributeValues&) = delete;

  void set_constants(const ServerContext& context);
  void set_object(const ObjectAttributes& attributes, const FileHandle& handle);
  void set_filesystem(const FilesystemAttributes& attributes);

 private:
  std::array<char, 12> owner_;
  std::array<char, 12> group_;
};

bool wants_filesystem(const nfs4::Bitmap& mask);

// Everything in `mask` of the object. May come back on another thread.
io::Task<Status> collect_attributes(Compound& c, const ObjectRef& object, const nfs4::Bitmap& mask,
                                    AttributeValues& out);

// fattr4 to be set. attrnotsupp, inval (read-only attribute), badowner, badxdr.
Status read_settable(const nfs4::Fattr& in, SetAttributes& out);
// The bits that SetAttributes::what names, of those that the client asked to set.
nfs4::Bitmap set_mask(uint32_t what, const nfs4::Bitmap& asked);

}  // namespace nfsrdma::server
