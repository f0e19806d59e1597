#include "frame/remote/http/network_needs.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <system_error>

#include <curl/curl.h>
#include <dlfcn.h>
#include <openssl/x509.h>

namespace cframefs::frame {
namespace {

namespace paths = std::filesystem;

/// Adds a path, and the directory in which the file lies that a symbolic link names.
void add_with_target(std::vector<std::string>& found, const char* path) {
  if (path == nullptr || *path == '\0') return;
  found.emplace_back(path);
  std::error_code failed;
  if (!paths::is_symlink(path, failed)) return;
  const paths::path real = paths::canonical(path, failed);
  if (failed) return;
  const bool is_directory = paths::is_directory(real, failed);
  found.push_back(is_directory ? real.string() : real.parent_path().string());
}

std::string url_part(CURLU* url, CURLUPart part, unsigned flags) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, flags) != CURLUE_OK) return {};
  std::string copy(text);
  curl_free(text);
  return copy;
}

std::uint16_t port_number(const std::string& port) {
  return static_cast<std::uint16_t>(std::strtoul(port.c_str(), nullptr, 10));
}

using UrlHandle = std::unique_ptr<CURLU, decltype(&curl_url_cleanup)>;

struct Proxy {
  std::uint16_t port = 0;
  bool is_tls = false;
};

/// Returns the proxies that the environment names.
std::vector<Proxy> proxies() {
  // Those of libcurl.
  constexpr std::uint16_t kUsual = 1080;
  constexpr std::uint16_t kUsualOfTls = 443;
  std::vector<Proxy> found;
  for (const char* const name : {"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"}) {
    const char* const proxy = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): no thread changes the environment
    if (proxy == nullptr || *proxy == '\0') continue;
    const UrlHandle url(curl_url(), curl_url_cleanup);
    if (curl_url_set(url.get(), CURLUPART_URL, proxy, CURLU_GUESS_SCHEME | CURLU_NON_SUPPORT_SCHEME) != CURLUE_OK)
      continue;
    const std::string port = url_part(url.get(), CURLUPART_PORT, 0);
    const bool is_tls = url_part(url.get(), CURLUPART_SCHEME, 0) == "https";
    found.push_back({!port.empty() ? port_number(port) : is_tls ? kUsualOfTls : kUsual, is_tls});
  }
  return found;
}

}  // namespace

std::vector<std::string> network_files() {
  std::vector<std::string> found = {"/etc", "/usr/lib/ssl", "/usr/share/ca-certificates",
                                    "/usr/local/share/ca-certificates", "/run/systemd/resolve"};
  add_with_target(found, "/etc/resolv.conf");
  add_with_target(found, "/etc/hosts");
  add_with_target(found, "/etc/nsswitch.conf");
  const curl_version_info_data* const curl = curl_version_info(CURLVERSION_NOW);
  add_with_target(found, curl->cainfo);
  add_with_target(found, curl->capath);
  add_with_target(found, X509_get_default_cert_file());
  add_with_target(found, X509_get_default_cert_dir());
  // NOLINTBEGIN(concurrency-mt-unsafe): no thread changes the environment
  add_with_target(found, std::getenv(X509_get_default_cert_file_env()));
  add_with_target(found, std::getenv(X509_get_default_cert_dir_env()));
  // NOLINTEND(concurrency-mt-unsafe)
  return found;
}

std::vector<std::uint16_t> proxy_ports() {
  std::vector<std::uint16_t> ports;
  for (const Proxy& proxy : proxies())
    ports.push_back(proxy.port);
  return ports;
}

bool has_tls_proxy() {
  const std::vector<Proxy> found = proxies();
  return std::any_of(found.begin(), found.end(), [](const Proxy& proxy) { return proxy.is_tls; });
}

std::uint16_t port_of(const std::string& url) {
  const UrlHandle parsed(curl_url(), curl_url_cleanup);
  if (curl_url_set(parsed.get(), CURLUPART_URL, url.c_str(), CURLU_URLENCODE) != CURLUE_OK) return 0;
  return port_number(url_part(parsed.get(), CURLUPART_PORT, CURLU_DEFAULT_PORT));
}

void load_resolvers() {
  std::ifstream file("/etc/nsswitch.conf");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string word;
    if (!(words >> word) || word != "hosts:") continue;
    while (words >> word) {
      // Not what is done with an answer: [NOTFOUND=return].
      const bool is_name = word.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_-") == std::string::npos;
      // It stays loaded. One that is missing is none for the C library, too.
      if (is_name) static_cast<void>(dlopen(("libnss_" + word + ".so.2").c_str(), RTLD_NOW));
    }
  }
}

}  // namespace cframefs::frame
