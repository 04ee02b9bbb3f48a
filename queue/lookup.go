package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	lookupTimeout = 5 * time.Second
	maxLookupBody = 4 << 20
)

// discover asks the nsqlookupds, again and again, which nsqds have the topic, and listens to those.
func (c *Consumer) discover(ctx context.Context, receive receiveFunc) {
	report := newErrorLog(c.cfg.Log.With("topic", c.cfg.Topic), c.cfg.Timing.LogEvery)
	for {
		found, all := make(map[string]bool), true
		for _, lookup := range c.cfg.LookupAddrs {
			addrs, err := c.lookup(ctx, lookup)
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				all = false
				report.noted(ctx, fmt.Errorf("ask nsqlookupd %s: %w", lookup, err))
			}
			for _, addr := range addrs {
				found[addr] = true
			}
		}
		for addr := range found {
			c.addLink(ctx, addr, receive)
		}
		if all {
			c.dropLinks(found)
		}
		if wait(ctx, c.cfg.Timing.Poll) != nil {
			return
		}
	}
}

// dropLinks ends the links to nsqds that no lookup knows any more and that are not connected.
func (c *Consumer) dropLinks(known map[string]bool) {
	for _, addr := range c.cfg.Addrs {
		known[addr] = true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	connected := make(map[string]bool)
	for s := range c.sessions {
		connected[s.conn.String()] = true
	}
	for addr, l := range c.links {
		if !known[addr] && !connected[addr] {
			l.unwanted(errStopped)
			delete(c.links, addr)
		}
	}
}

// lookup asks one nsqlookupd. A topic that it does not know is served by nobody yet, which is no error.
func (c *Consumer) lookup(ctx context.Context, addr string) ([]string, error) {
	target, err := lookupURL(addr, c.cfg.Topic)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	req.Header.Set("Accept", "application/vnd.nsq; version=1.0")
	resp, err := c.web.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNotFound {
		return nil, nil
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("unexpected status %s", resp.Status)
	}
	var answer struct {
		Producers []struct {
			BroadcastAddress string `json:"broadcast_address"`
			TCPPort          int    `json:"tcp_port"`
		} `json:"producers"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxLookupBody)).Decode(&answer); err != nil {
		return nil, fmt.Errorf("decode answer: %w", err)
	}
	addrs := make([]string, 0, len(answer.Producers))
	for _, p := range answer.Producers {
		addrs = append(addrs, net.JoinHostPort(p.BroadcastAddress, strconv.Itoa(p.TCPPort)))
	}
	return addrs, nil
}

// lookupURL is where to ask for the topic; addr is host:port or an http URL.
func lookupURL(addr, topic string) (string, error) {
	if !strings.Contains(addr, "://") {
		addr = "http://" + addr
	}
	u, err := url.Parse(addr)
	if err != nil {
		return "", fmt.Errorf("parse nsqlookupd address: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return "", fmt.Errorf("parse nsqlookupd address: %q is not host:port or an http URL", addr)
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/lookup"
	}
	query := u.Query()
	query.Set("topic", topic)
	u.RawQuery = query.Encode()
	return u.String(), nil
}

// checkAddrs checks that each address is host:port.
func checkAddrs(addrs []string) error {
	var errs []error
	for _, addr := range addrs {
		if _, _, err := net.SplitHostPort(addr); err != nil {
			errs = append(errs, fmt.Errorf("parse nsqd address: %w", err))
		}
	}
	return errors.Join(errs...)
}
