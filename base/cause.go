package base

import (
	"context"
	"net"
	"os"
	"slices"
	"syscall"

	"github.com/holdfast/holdfast/storage"
)

// causeOf returns an error's code and the host that it happened with, by which the Registry groups
// failures. Errors provide them by methods ErrorCode and ErrorHost; the first on each path down the
// tree counts. The order of joined errors is arbitrary: of several codes causeOf returns the first
// in alphabetical order, and of several hosts none.
func causeOf(err error) (code, host string) {
	var codes, hosts []string
	walkCauses(err, "", &codes, &hosts)
	slices.Sort(codes)
	slices.Sort(hosts)
	if len(codes) > 0 {
		code = codes[0]
	}
	if hosts = slices.Compact(hosts); len(hosts) == 1 {
		host = hosts[0]
	}
	return code, host
}

// walkCauses collects the codes and hosts of the tree of err. known is the code of an error above,
// or "".
func walkCauses(err error, known string, codes, hosts *[]string) {
	if err == nil {
		return
	}
	if known == "" {
		if known = codeOf(err); known != "" {
			*codes = append(*codes, known)
		}
	}
	if h, ok := err.(interface{ ErrorHost() string }); ok {
		if host := h.ErrorHost(); host != "" {
			*hosts = append(*hosts, host)
			if known != "" {
				return
			}
		}
	}
	for _, e := range wrapped(err) {
		walkCauses(e, known, codes, hosts)
	}
}

// codeOf returns the code of one error of a tree: by its method, or for well-known errors of other
// packages.
func codeOf(err error) string {
	if c, ok := err.(interface{ ErrorCode() string }); ok {
		return c.ErrorCode()
	}
	switch e := err.(type) { //nolint:errorlint // one error of the tree
	case *panicError:
		return "panic"
	case syscall.Errno:
		return errnoCode(e)
	case *net.DNSError:
		return "dns"
	}
	switch err { //nolint:errorlint // one error of the tree
	case context.DeadlineExceeded, os.ErrDeadlineExceeded:
		return "timeout"
	case storage.ErrNoSpace:
		return "no-space"
	}
	return ""
}

// errnoCode returns the code of an operating system error, or "" if it has none.
func errnoCode(e syscall.Errno) string {
	for code, errnos := range map[string][]syscall.Errno{
		"connection-refused": {syscall.ECONNREFUSED},
		"connection":         {syscall.ECONNRESET, syscall.EPIPE, syscall.EHOSTUNREACH, syscall.ENETUNREACH},
		"timeout":            {syscall.ETIMEDOUT},
		"no-space":           {syscall.ENOSPC, syscall.EDQUOT},
		"io-error":           {syscall.EIO},
		"read-only":          {syscall.EROFS},
		"permission":         {syscall.EACCES, syscall.EPERM},
		"too-many-files":     {syscall.EMFILE, syscall.ENFILE},
	} {
		if slices.Contains(errnos, e) {
			return code
		}
	}
	return ""
}
