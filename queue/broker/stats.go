package broker

import (
	"slices"
	"strings"
)

// Stats is a snapshot of the broker, in the shape of nsqd's /stats?format=json.
type Stats struct {
	Version   string       `json:"version"`
	Health    string       `json:"health"`
	StartTime int64        `json:"start_time"` // seconds since 1970
	Topics    []TopicStats `json:"topics"`     // by name
}

// TopicStats describes one topic.
type TopicStats struct {
	Name         string         `json:"topic_name"`
	Channels     []ChannelStats `json:"channels"` // by name
	Depth        int            `json:"depth"`    // messages waiting for the topic's first channel
	MessageCount uint64         `json:"message_count"`
	Paused       bool           `json:"paused"` // always false: the Registry does the pausing
}

// ChannelStats describes one channel. Each unfinished message is counted in exactly one of Depth,
// InFlight and Deferred; the other counts only grow.
type ChannelStats struct {
	Name         string        `json:"channel_name"`
	Depth        int           `json:"depth"`
	InFlight     int           `json:"in_flight_count"`
	Deferred     int           `json:"deferred_count"`
	MessageCount uint64        `json:"message_count"`
	RequeueCount uint64        `json:"requeue_count"` // by REQ, or because its client disconnected
	TimeoutCount uint64        `json:"timeout_count"`
	ClientCount  int           `json:"client_count"`
	Clients      []ClientStats `json:"clients"`
	Paused       bool          `json:"paused"` // always false
}

// ClientStats describes one subscriber.
type ClientStats struct {
	ID            string `json:"client_id"`
	Hostname      string `json:"hostname"`
	UserAgent     string `json:"user_agent"`
	RemoteAddress string `json:"remote_address"`
	Ready         int64  `json:"ready_count"`
	InFlight      int64  `json:"in_flight_count"`
	FinishCount   uint64 `json:"finish_count"`
	RequeueCount  uint64 `json:"requeue_count"`
}

// Stats returns a snapshot. It may be called at any time, also after Close.
func (b *Broker) Stats() Stats {
	return Stats{Version: version, Health: "OK", StartTime: b.started.Unix(), Topics: b.hub.stats()}
}

// Topic returns the topic with that name; the zero value if there is none.
func (s Stats) Topic(name string) TopicStats {
	for _, t := range s.Topics {
		if t.Name == name {
			return t
		}
	}
	return TopicStats{}
}

// Channel returns the channel with that name; the zero value if there is none.
func (t TopicStats) Channel(name string) ChannelStats {
	for _, ch := range t.Channels {
		if ch.Name == name {
			return ch
		}
	}
	return ChannelStats{}
}

func (h *hub) stats() []TopicStats {
	h.mu.Lock()
	defer h.mu.Unlock()
	topics := make([]TopicStats, 0, len(h.topics))
	for _, t := range h.topics {
		ts := TopicStats{
			Name: t.name, Depth: len(t.backlog), MessageCount: t.messages,
			Channels: make([]ChannelStats, 0, len(t.channels)),
		}
		for _, ch := range t.channels {
			ts.Channels = append(ts.Channels, ch.stats())
		}
		slices.SortFunc(ts.Channels, func(a, b ChannelStats) int { return strings.Compare(a.Name, b.Name) })
		topics = append(topics, ts)
	}
	slices.SortFunc(topics, func(a, b TopicStats) int { return strings.Compare(a.Name, b.Name) })
	return topics
}

func (ch *channel) stats() ChannelStats {
	s := ChannelStats{
		Name: ch.name, Depth: ch.queue.len(), InFlight: len(ch.inFlight), Deferred: ch.deferred,
		MessageCount: ch.messages, RequeueCount: ch.requeues, TimeoutCount: ch.timeouts,
		ClientCount: len(ch.clients), Clients: make([]ClientStats, 0, len(ch.clients)),
	}
	for _, cl := range ch.clients {
		s.Clients = append(s.Clients, ClientStats{
			ID: cl.identity.ClientID, Hostname: cl.identity.Hostname, UserAgent: cl.identity.UserAgent,
			RemoteAddress: cl.remote, Ready: cl.ready, InFlight: cl.inFlight,
			FinishCount: cl.finishes, RequeueCount: cl.requeues,
		})
	}
	return s
}
