package source_test

import (
	"net"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/source"
)

// FuzzGuard checks that no written form of an internal address passes, that no address passes that
// could be parsed in two ways, and that only an IP address and a port are connected to.
func FuzzGuard(f *testing.F) {
	for _, host := range []string{
		"127.0.0.1", "2130706433", "0x7f000001", "0177.0.0.1", "127.1", "0", "127.0.0.1.", "[::1]", "[::ffff:127.0.0.1]", "[fe80::1%25eth0]",
		"169.254.169.254", "[fd00:ec2::254]", "[64:ff9b::a9fe:a9fe]", "[2002:7f00:1::]", "①②⑦.⓪.⓪.①", "localhost", "h:80@127.0.0.1", "h\\@127.0.0.1",
		"h#@127.0.0.1", "h?@127.0.0.1", "h:0", "h:99999", "h:", "h%00", "h%2f127.0.0.1", "[::1", "xn--", "h ", "user:pw@h",
	} {
		f.Add("http://"+host+"/f", []byte{127, 0, 0, 1})
	}
	f.Add("HTTPS://H.example:443//a/../b?c#d", []byte{8, 8, 8, 8})
	f.Add("http:127.0.0.1", netip.MustParseAddr("64:ff9b::10.0.0.1").AsSlice())
	f.Add("//127.0.0.1/", netip.MustParseAddr("2002:c0a8:1::").AsSlice())
	f.Add("http:///127.0.0.1/", netip.MustParseAddr("::ffff:0:172.16.0.1").AsSlice())
	f.Fuzz(func(t *testing.T, raw string, ip []byte) {
		if addr, ok := netip.AddrFromSlice(ip); ok {
			checkAddr(t, addr)
		}
		u, err := source.ParseURL(raw)
		if err != nil {
			return
		}
		checkURL(t, raw, u)
		for _, address := range []string{u.Host, net.JoinHostPort(u.Hostname(), "80"), raw} {
			addrPort, err := netip.ParseAddrPort(address)
			if allowed := (source.Guard{}).Control("tcp", address, nil) == nil; allowed && (err != nil || inner(addrPort.Addr())) {
				t.Errorf("%q may be connected to", address)
			}
		}
	})
}

// checkAddr compares the guard with another judgement of what is inside.
func checkAddr(t *testing.T, addr netip.Addr) {
	for _, form := range []netip.Addr{addr, addr.Unmap(), addr.WithZone("eth0"), netip.AddrFrom16(addr.As16())} {
		if err := (source.Guard{}).Check(form); err == nil && inner(addr) {
			t.Errorf("%s is allowed", form)
		}
	}
	if addr = addr.Unmap(); addr.Is4() {
		v4 := addr.As4()
		for _, prefix := range []string{"::", "::ffff:0:0:0", "64:ff9b::", "64:ff9b:1::"} {
			in := netip.MustParseAddr(prefix).As16()
			copy(in[12:], v4[:])
			if err := (source.Guard{}).Check(netip.AddrFrom16(in)); err == nil {
				t.Errorf("%s is allowed, and embeds %s", netip.AddrFrom16(in), addr)
			}
		}
	}
}

// inner says, by other means than the guard's table, that an address is no public one.
func inner(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	return !addr.IsValid() || !addr.IsGlobalUnicast() || addr.IsPrivate() || addr.IsLoopback() ||
		addr == netip.IPv4Unspecified() || addr == netip.AddrFrom4([4]byte{255, 255, 255, 255})
}

// checkURL: what is accepted has one meaning, for whoever reads it.
func checkURL(t *testing.T, raw string, u *url.URL) {
	if u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.Hostname() == "" || strings.ContainsAny(u.Host, "@/\\?# \t\r\n\x00") {
		t.Fatalf("%q is accepted as %#v", raw, u)
	}
	again, err := url.Parse(u.String())
	if err != nil || again.Host != u.Host || again.Scheme != u.Scheme || again.User != nil {
		t.Errorf("%q reads again as %#v (%v)", u, again, err)
	}
	if text := source.Redact(raw); strings.Contains(text, "\n") {
		t.Errorf("%q is shown as %q", raw, text)
	}
}
