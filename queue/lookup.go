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

// lookups asks nsqlookupds for nsqds.
type lookups struct {
	addrs  []string // each host:port or http URL
	timing Timing
	web    *http.Client
	report *errorLog
}

func newLookups(addrs []string, timing Timing, report *errorLog) *lookups {
	return &lookups{addrs: addrs, timing: timing, report: report, web: &http.Client{Timeout: lookupTimeout, Transport: &http.Transport{}}}
}

// poll asks repeatedly until ctx ends which nsqds have the topic, or for all nsqds if topic is "".
// It calls found with the addresses; all reports whether every nsqlookupd has answered, so that no
// other nsqd is known.
func (l *lookups) poll(ctx context.Context, topic string, found func(addrs map[string]bool, all bool)) {
	defer l.web.CloseIdleConnections()
	for {
		known, all := make(map[string]bool), true
		for _, lookup := range l.addrs {
			addrs, err := askLookup(ctx, l.web, lookup, topic)
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				all = false
				l.report.warn(ctx, fmt.Errorf("ask nsqlookupd %s: %w", lookup, err))
			}
			for _, addr := range addrs {
				known[addr] = true
			}
		}
		found(known, all)
		if wait(ctx, l.timing.Poll) != nil {
			return
		}
	}
}

// discover subscribes to the nsqds that have the topic, until ctx ends.
func (c *Consumer) discover(ctx context.Context, receive receiveFunc) {
	newLookups(c.cfg.LookupAddrs, c.cfg.Timing, c.report).poll(ctx, c.cfg.Topic, func(addrs map[string]bool, all bool) {
		for addr := range addrs {
			c.addLink(ctx, addr, receive)
		}
		if all {
			c.dropLinks(addrs)
		}
	})
}

// dropLinks ends the links to nsqds that are not connected and that no lookup knows any more.
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
			l.cancel(errStopped)
			delete(c.links, addr)
		}
	}
}

// Nodes asks one nsqlookupd (host:port or an http URL) for the addresses of all nsqds that it
// knows.
func Nodes(ctx context.Context, lookup string) ([]string, error) {
	return TopicNodes(ctx, lookup, "")
}

// TopicNodes is Nodes for the nsqds that have a topic; "" stands for all.
func TopicNodes(ctx context.Context, lookup, topic string) ([]string, error) {
	web := &http.Client{Timeout: lookupTimeout, Transport: &http.Transport{}}
	defer web.CloseIdleConnections()
	return askLookup(ctx, web, lookup, topic)
}

// askLookup asks one nsqlookupd for the nsqds that have the topic, or for all if topic is "". An
// unknown topic is no error: it has no nsqd yet.
func askLookup(ctx context.Context, web *http.Client, addr, topic string) ([]string, error) {
	target, err := lookupURL(addr, topic)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	req.Header.Set("Accept", "application/vnd.nsq; version=1.0")
	resp, err := web.Do(req)
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

// lookupURL returns the URL that answers for the topic, or for all nsqds if topic is "". addr is
// host:port or an http URL.
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
	u.Path = strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), "/lookup")
	if topic == "" {
		return u.JoinPath("nodes").String(), nil
	}
	u = u.JoinPath("lookup")
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
