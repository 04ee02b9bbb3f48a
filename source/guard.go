package source

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"syscall"
)

// Guard refuses connections to addresses that depositors must not reach: this machine, its network,
// the cloud's metadata service. It checks the address of each connection after the name was
// resolved, so a name that resolves differently a second time cannot slip through. The zero Guard
// allows only public addresses.
type Guard struct {
	// Allow lists exceptions. ParseAllow reads it from HOLDFAST_NET_ALLOW.
	Allow []netip.Prefix
}

// ForbiddenError says that the guard refused an address.
type ForbiddenError struct {
	Addr  netip.Addr
	Range netip.Prefix // the range that contains it; zero if it is not an IP address
	Why   string
}

// Error implements error.
func (e *ForbiddenError) Error() string {
	return fmt.Sprintf("address %s is refused: %s", e.Addr, e.Why)
}

// forbiddenRange is a range of addresses that are not public.
type forbiddenRange struct {
	prefix string
	why    string
}

// forbiddenRanges returns these ranges, from the IANA registries of special-purpose addresses. It
// includes ranges that embed an IPv4 address, which may be private. A network's own NAT64 prefix
// cannot be known here.
func forbiddenRanges() []forbiddenRange {
	return []forbiddenRange{
		{"0.0.0.0/8", "it means this host (RFC 791)"},
		{"10.0.0.0/8", "it is private (RFC 1918)"},
		{"100.64.0.0/10", "it is a provider's shared address (RFC 6598)"},
		{"127.0.0.0/8", "it is loopback"},
		{"168.63.129.16/32", "it is the platform's own on Azure"},
		{"169.254.0.0/16", "it is link-local, where cloud metadata services are (RFC 3927)"},
		{"172.16.0.0/12", "it is private (RFC 1918)"},
		{"192.0.0.0/24", "it is reserved for protocols (RFC 6890)"},
		{"192.0.2.0/24", "it is for documentation (RFC 5737)"},
		{"192.88.99.0/24", "it is a 6to4 relay (RFC 7526)"},
		{"192.168.0.0/16", "it is private (RFC 1918)"},
		{"198.18.0.0/15", "it is for benchmarks (RFC 2544)"},
		{"198.51.100.0/24", "it is for documentation (RFC 5737)"},
		{"203.0.113.0/24", "it is for documentation (RFC 5737)"},
		{"224.0.0.0/4", "it is multicast"},
		{"240.0.0.0/4", "it is reserved or broadcast"},
		{"::/96", "it is loopback, unspecified, or embeds an IPv4 address"},
		{"::ffff:0:0:0/96", "it embeds an IPv4 address (SIIT, RFC 2765)"},
		{"64:ff9b::/96", "it embeds an IPv4 address (NAT64, RFC 6052)"},
		{"64:ff9b:1::/48", "it embeds an IPv4 address (NAT64, RFC 8215)"},
		{"100::/64", "it is discarded (RFC 6666)"},
		{"2001::/23", "it is reserved for protocols (RFC 2928; Teredo)"},
		{"2001:db8::/32", "it is for documentation (RFC 3849)"},
		{"2002::/16", "it embeds an IPv4 address (6to4, RFC 3056)"},
		{"3fff::/20", "it is for documentation (RFC 9637)"},
		{"fc00::/7", "it is private (RFC 4193)"},
		{"fe80::/10", "it is link-local (RFC 4291)"},
		{"fec0::/10", "it is site-local (RFC 3879)"},
		{"ff00::/8", "it is multicast"},
		// All other addresses outside of 2000::/3, the only range assigned for public use.
		{"::/3", "it is not a public address (RFC 4291)"},
		{"4000::/2", "it is not a public address (RFC 4291)"},
		{"8000::/1", "it is not a public address (RFC 4291)"},
	}
}

// Check returns a *ForbiddenError unless addr is public or allowed. It treats an IPv4-mapped IPv6
// address as IPv4.
func (g Guard) Check(addr netip.Addr) error {
	if !addr.IsValid() {
		return &ForbiddenError{Addr: addr, Why: "it is not an IP address"}
	}
	addr = addr.Unmap().WithZone("")
	for _, prefix := range g.Allow {
		if prefix.Contains(addr) {
			return nil
		}
	}
	for _, r := range forbiddenRanges() {
		if prefix := netip.MustParsePrefix(r.prefix); prefix.Contains(addr) {
			return &ForbiddenError{Addr: addr, Range: prefix, Why: r.why}
		}
	}
	return nil
}

// Control is a net.Dialer.Control. It checks each address before a connection is made.
func (g Guard) Control(network, address string, _ syscall.RawConn) error {
	if !strings.HasPrefix(network, "tcp") {
		return &ForbiddenError{Why: "network " + network + " is not TCP"}
	}
	addrPort, err := netip.ParseAddrPort(address)
	if err != nil {
		return &ForbiddenError{Why: "it is not an IP address and port"}
	}
	return g.Check(addrPort.Addr())
}

// ParseAllow reads a list of prefixes (10.0.0.0/8) and addresses (127.0.0.1), separated by commas.
// Spaces and empty items are ignored. The error names every invalid item.
func ParseAllow(list string) ([]netip.Prefix, error) {
	var allow []netip.Prefix
	var faults []error
	for item := range strings.SplitSeq(list, ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			continue
		}
		prefix, err := parsePrefix(item)
		if err != nil {
			faults = append(faults, fmt.Errorf("parse allowed network %q: want an address or a prefix like 10.0.0.0/8: %w", item, err))
			continue
		}
		allow = append(allow, prefix)
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return allow, nil
}

// parsePrefix converts IPv4-mapped IPv6 to IPv4, because Check compares IPv4.
func parsePrefix(item string) (netip.Prefix, error) {
	const mapped = 96 // bits before the IPv4 address
	if !strings.Contains(item, "/") {
		addr, err := netip.ParseAddr(item)
		if err != nil {
			return netip.Prefix{}, err
		}
		addr = addr.Unmap().WithZone("")
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	prefix, err := netip.ParsePrefix(item)
	if err != nil {
		return netip.Prefix{}, err
	}
	if prefix.Addr().Is4In6() {
		if prefix.Bits() < mapped {
			return netip.Prefix{}, errors.New("the prefix is wider than all of IPv4")
		}
		prefix = netip.PrefixFrom(prefix.Addr().Unmap(), prefix.Bits()-mapped)
	}
	return prefix.Masked(), nil
}
