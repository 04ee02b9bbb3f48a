package client

import (
	"errors"
	"net"
)

// isConnect reports whether connecting failed, so that nothing of the request was sent.
func isConnect(err error) bool {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return true
	}
	var dns *net.DNSError
	return errors.As(err, &dns)
}
