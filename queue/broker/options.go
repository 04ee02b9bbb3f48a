package broker

import (
	"errors"
	"fmt"
	"log/slog"
	"time"
)

const (
	// version is reported by IDENTIFY. It is nsqd's, since clients choose their protocol by it.
	version = "1.3.0"

	// minClientTime is the shortest heartbeat or message timeout that a client may request, as with
	// nsqd. Only Options can set shorter ones.
	minClientTime = time.Second

	// maxOutbox is how many bytes may wait for one client before it gets no more messages.
	maxOutbox = 256 << 10

	// maxIdentify and maxSecret limit the bytes of IDENTIFY and AUTH.
	maxIdentify = 64 << 10
	maxSecret   = 1 << 10

	// Memory of a topic, a channel and a message beside their names and bodies, in bytes, rounded
	// up.
	topicCost   = 1 << 10
	channelCost = 1 << 10
	messageCost = 384

	acceptPause = 50 * time.Millisecond
	lingerTime  = time.Second
)

// Options configure a broker. The zero value of each field means nsqd's default, which the field's
// comment names.
type Options struct {
	MsgTimeout           time.Duration // how long a client may hold a message without touching it; 60 s
	MaxMsgTimeout        time.Duration // how long a client may hold a message in total, touched or not; 15 min
	MaxReqTimeout        time.Duration // the longest delay of REQ (longer ones are cut) and DPUB (refused); 1 h
	HeartbeatInterval    time.Duration // interval unless the client requests another; 30 s
	MaxHeartbeatInterval time.Duration // the longest interval that a client may request; 60 s
	MaxRdyCount          int64         // how many messages one client may hold; 2500
	MaxMsgSize           int64         // limit of one message, in bytes; 1 MiB
	MaxBodySize          int64         // limit of one MPUB, in bytes; 5 MiB
	MaxMemory            int64         // limit of topics, channels, messages and bodies being read, in bytes; 64 MiB
	MaxClients           int           // limit of connections; 1000
	Remote               bool          // allow addresses other than loopback
	AuthSecret           string        // what clients must send by AUTH before they publish or subscribe; "": no authentication
	AuthTime             time.Duration // how long a client may take to authenticate before it is disconnected; 5 s
	BroadcastAddress     string        // the host that the lookup answers; "": the one listened on, or for a wildcard the host that the client used
	Log                  *slog.Logger  // nil: no log
}

func (o Options) withDefaults() Options {
	setDefault(&o.MsgTimeout, time.Minute)
	setDefault(&o.MaxMsgTimeout, 15*time.Minute)
	setDefault(&o.MaxReqTimeout, time.Hour)
	setDefault(&o.HeartbeatInterval, 30*time.Second)
	setDefault(&o.MaxHeartbeatInterval, time.Minute)
	setDefault(&o.MaxRdyCount, 2500)
	setDefault(&o.MaxMsgSize, 1<<20)
	setDefault(&o.MaxBodySize, 5<<20)
	setDefault(&o.MaxMemory, 64<<20)
	setDefault(&o.MaxClients, 1000)
	setDefault(&o.AuthTime, 5*time.Second)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func (o Options) check() error {
	var errs []error
	positive := func(name string, value int64) {
		if value < 0 {
			errs = append(errs, fmt.Errorf("%s is negative", name))
		}
	}
	positive("MsgTimeout", int64(o.MsgTimeout))
	positive("MaxMsgTimeout", int64(o.MaxMsgTimeout))
	positive("MaxReqTimeout", int64(o.MaxReqTimeout))
	positive("HeartbeatInterval", int64(o.HeartbeatInterval))
	positive("MaxHeartbeatInterval", int64(o.MaxHeartbeatInterval))
	positive("MaxRdyCount", o.MaxRdyCount)
	positive("MaxMsgSize", o.MaxMsgSize)
	positive("MaxBodySize", o.MaxBodySize)
	positive("MaxMemory", o.MaxMemory)
	positive("MaxClients", int64(o.MaxClients))
	positive("AuthTime", int64(o.AuthTime))
	if o.MsgTimeout > o.MaxMsgTimeout {
		errs = append(errs, fmt.Errorf("MsgTimeout %s is longer than MaxMsgTimeout %s", o.MsgTimeout, o.MaxMsgTimeout))
	}
	return errors.Join(errs...)
}
