package broker

import (
	"encoding/json"
	"net"
	"net/http"
	"os"
	"strconv"
)

// producer describes one nsqd in the answers of a lookup.
type producer struct {
	RemoteAddress    string   `json:"remote_address"`
	Hostname         string   `json:"hostname"`
	BroadcastAddress string   `json:"broadcast_address"`
	TCPPort          int      `json:"tcp_port"`
	HTTPPort         int      `json:"http_port"`
	Version          string   `json:"version"`
	Tombstones       []bool   `json:"tombstones,omitempty"`
	Topics           []string `json:"topics,omitempty"`
}

// Handler returns the broker's HTTP handler. It serves GET:
//
//	/ping           OK while the broker runs, status 500 after Close
//	/stats          the counts of Stats as JSON; topic= and channel= select
//	/lookup?topic=  the answer of an nsqlookupd: this broker, for every topic
//	/nodes          the same without a topic
//
// It may be served at any time; it reports the TCP address of the first Listen.
func (b *Broker) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ping", b.servePing)
	mux.HandleFunc("GET /stats", b.serveStats)
	mux.HandleFunc("GET /lookup", b.serveLookup)
	mux.HandleFunc("GET /nodes", b.serveNodes)
	return mux
}

func (b *Broker) servePing(w http.ResponseWriter, _ *http.Request) {
	select {
	case <-b.stop:
		http.Error(w, "NOK - broker is closed", http.StatusInternalServerError)
	default:
		_, _ = w.Write([]byte("OK")) // the client is gone if this fails
	}
}

func (b *Broker) serveStats(w http.ResponseWriter, r *http.Request) {
	stats := b.Stats()
	if name := r.FormValue("topic"); name != "" {
		topics := []TopicStats{}
		if t := stats.Topic(name); t.Name != "" {
			topics = append(topics, t)
		}
		stats.Topics = topics
	}
	if name := r.FormValue("channel"); name != "" {
		for i, t := range stats.Topics {
			channels := []ChannelStats{}
			if ch := t.Channel(name); ch.Name != "" {
				channels = append(channels, ch)
			}
			stats.Topics[i].Channels = channels
		}
	}
	writeJSON(w, http.StatusOK, stats)
}

func (b *Broker) serveLookup(w http.ResponseWriter, r *http.Request) {
	name := r.FormValue("topic")
	if name == "" {
		writeJSON(w, http.StatusBadRequest, map[string]string{"message": "MISSING_ARG_TOPIC"})
		return
	}
	if !validName(name) {
		writeJSON(w, http.StatusBadRequest, map[string]string{"message": "INVALID_ARG_TOPIC"})
		return
	}
	channels := []string{}
	for _, ch := range b.Stats().Topic(name).Channels {
		channels = append(channels, ch.Name)
	}
	writeJSON(w, http.StatusOK, struct {
		Channels  []string   `json:"channels"`
		Producers []producer `json:"producers"`
	}{channels, b.producers(r)})
}

func (b *Broker) serveNodes(w http.ResponseWriter, r *http.Request) {
	nodes := b.producers(r)
	for i := range nodes {
		for _, t := range b.Stats().Topics {
			nodes[i].Topics = append(nodes[i].Topics, t.Name)
			nodes[i].Tombstones = append(nodes[i].Tombstones, false)
		}
	}
	writeJSON(w, http.StatusOK, struct {
		Producers []producer `json:"producers"`
	}{nodes})
}

// producers returns this broker's entry in a lookup; none before Listen.
func (b *Broker) producers(r *http.Request) []producer {
	host, port, err := net.SplitHostPort(b.Addr())
	if err != nil {
		return []producer{}
	}
	tcpPort, err := strconv.Atoi(port)
	if err != nil {
		return []producer{}
	}
	p := producer{RemoteAddress: b.Addr(), BroadcastAddress: host, TCPPort: tcpPort, Version: version}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		// Clients cannot connect to a wildcard address, so answer the host that this client used.
		p.BroadcastAddress = hostOnly(r.Host)
	}
	if b.opts.BroadcastAddress != "" {
		p.BroadcastAddress = b.opts.BroadcastAddress
	}
	if _, port, err := net.SplitHostPort(localAddr(r)); err == nil {
		p.HTTPPort, _ = strconv.Atoi(port) // 0 if it is not a TCP port
	}
	p.Hostname, _ = os.Hostname() // informative only
	return []producer{p}
}

func hostOnly(hostport string) string {
	if host, _, err := net.SplitHostPort(hostport); err == nil {
		return host
	}
	return hostport
}

func localAddr(r *http.Request) string {
	if addr, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		return addr.String()
	}
	return ""
}

// writeJSON writes value as the whole body, without nsqd's older envelope.
func writeJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("X-NSQ-Content-Type", "nsq; version=1.0")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value) // the client is gone if this fails
}
