package broker

import (
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// identity is the body of IDENTIFY: what a client reports and wants. Unknown fields are ignored.
type identity struct {
	ClientID           string `json:"client_id"`
	Hostname           string `json:"hostname"`
	UserAgent          string `json:"user_agent"`
	FeatureNegotiation bool   `json:"feature_negotiation"`
	HeartbeatInterval  int64  `json:"heartbeat_interval"` // milliseconds; 0 the default, -1 none
	MsgTimeout         int64  `json:"msg_timeout"`        // milliseconds; 0 the default
}

// features is the answer to a client that negotiates. TLS, compression and sampling are always
// refused with false.
type features struct {
	MaxRdyCount         int64  `json:"max_rdy_count"`
	Version             string `json:"version"`
	MaxMsgTimeout       int64  `json:"max_msg_timeout"`
	MsgTimeout          int64  `json:"msg_timeout"`
	TLSv1               bool   `json:"tls_v1"`
	Deflate             bool   `json:"deflate"`
	DeflateLevel        int    `json:"deflate_level"`
	MaxDeflateLevel     int    `json:"max_deflate_level"`
	Snappy              bool   `json:"snappy"`
	SampleRate          int    `json:"sample_rate"`
	AuthRequired        bool   `json:"auth_required"`
	OutputBufferSize    int    `json:"output_buffer_size"`
	OutputBufferTimeout int    `json:"output_buffer_timeout"`
}

// identify reads the body of an IDENTIFY and sets the heartbeat and the message timeout.
func (c *conn) identify() (string, error) {
	if c.state != stateInit {
		return "", refuse(codeInvalid, "cannot IDENTIFY in current state")
	}
	size, err := c.readSize()
	if err != nil {
		return "", err
	}
	if size <= 0 || size > maxIdentify {
		return "", refuse(codeBadBody, "IDENTIFY invalid body size %d", size)
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(c.in, body); err != nil {
		return "", err
	}
	var who identity
	if err := json.Unmarshal(body, &who); err != nil {
		return "", refuse(codeBadBody, "IDENTIFY failed to decode JSON body")
	}
	if err := c.negotiate(who); err != nil {
		return "", err
	}
	if !who.FeatureNegotiation {
		return responseOK, nil
	}
	answer, err := json.Marshal(features{
		MaxRdyCount:     c.broker.opts.MaxRdyCount,
		Version:         version,
		MaxMsgTimeout:   c.broker.opts.MaxMsgTimeout.Milliseconds(),
		MsgTimeout:      c.client.msgTimeout.Milliseconds(),
		MaxDeflateLevel: 6,
		AuthRequired:    c.broker.opts.AuthSecret != "",
	})
	if err != nil {
		return "", fmt.Errorf("encode features: %w", err)
	}
	return string(answer), nil
}

func (c *conn) negotiate(who identity) error {
	switch beat := time.Duration(who.HeartbeatInterval) * time.Millisecond; {
	case who.HeartbeatInterval == 0:
	case who.HeartbeatInterval == -1:
		c.setHeartbeat(0)
	case beat >= minClientTime && beat <= c.broker.opts.MaxHeartbeatInterval:
		c.setHeartbeat(beat)
	default:
		return refuse(codeBadBody, "IDENTIFY heartbeat interval (%d) is invalid", who.HeartbeatInterval)
	}
	switch timeout := time.Duration(who.MsgTimeout) * time.Millisecond; {
	case who.MsgTimeout == 0:
	case timeout >= minClientTime && timeout <= c.broker.opts.MaxMsgTimeout:
		c.client.msgTimeout = timeout
	default:
		return refuse(codeBadBody, "IDENTIFY msg timeout (%d) is invalid", who.MsgTimeout)
	}
	c.client.identity = who
	return nil
}
