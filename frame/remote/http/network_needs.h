// What libcurl, TLS and the resolver of names need of the system at run time, for a process that gives up the rest.
//
// Thread safety: functions, while no thread changes the environment. Errors: what is missing is left out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cframefs::frame {

/// Returns the files and directories that are read: those of the resolver and of the certificates of the system. As a
/// rule they lie in /etc, as whole: resolv.conf and certificates are replaced by other files while the process runs.
std::vector<std::string> network_files();

/// Returns the ports of the proxies that the environment names.
std::vector<std::uint16_t> proxy_ports();

/// Returns whether the environment names a proxy that is spoken to by TLS.
bool has_tls_proxy();

/// Returns the port of an address of http or https; 0 if it is none.
std::uint16_t port_of(const std::string& url);

/// Loads the libraries that look up names as /etc/nsswitch.conf says. The C library would load each at its first use.
void load_resolvers();

}  // namespace cframefs::frame
