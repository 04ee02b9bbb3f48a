package e2e

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// proxy passes connections on to an address and can break them, as networks do.
type proxy struct {
	target string
	in     net.Listener
	wait   sync.WaitGroup

	mu     sync.Mutex
	closed bool // no connection is made
	open   map[net.Conn]bool
}

// newProxy starts a proxy and stops it at the end of the test.
func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{target: target, in: l, open: map[net.Conn]bool{}}
	p.wait.Go(p.accept)
	t.Cleanup(func() {
		l.Close()
		p.outage(true)
		p.wait.Wait()
	})
	return p
}

func (p *proxy) addr() string { return p.in.Addr().String() }

func (p *proxy) accept() {
	for {
		conn, err := p.in.Accept()
		if err != nil {
			return
		}
		p.wait.Go(func() { p.pass(conn) })
	}
}

// pass carries bytes both ways until one side ends.
func (p *proxy) pass(from net.Conn) {
	defer from.Close()
	to, err := net.DialTimeout("tcp", p.target, time.Second)
	if err != nil {
		return
	}
	defer to.Close()
	if !p.hold(from) || !p.hold(to) {
		return
	}
	defer p.drop(from, to)
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{from, to}, {to, from}} {
		both.Go(func() {
			_, _ = io.Copy(way[0], way[1]) // however it ends, both ends end
			way[0].Close()
			way[1].Close()
		})
	}
	both.Wait()
}

func (p *proxy) hold(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.open[c] = true
	}
	return !p.closed
}

func (p *proxy) drop(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		delete(p.open, c)
	}
}

// cut breaks all connections in the middle of whatever they carry, and returns how many.
func (p *proxy) cut() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.open {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // with a reset
		}
		c.Close()
	}
	return len(p.open) / 2
}

// outage breaks all connections and lets nobody through, until it is over.
func (p *proxy) outage(on bool) {
	p.mu.Lock()
	p.closed = on
	p.mu.Unlock()
	if on {
		p.cut()
	}
}
